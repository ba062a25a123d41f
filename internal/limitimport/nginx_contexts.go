package limitimport

import (
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// nginxContext is a file or a block.
type nginxContext struct {
	name     string // of a block, such as location
	line     int
	outer    *nginxContext
	location location  // of a location
	server   *server   // nil outside of a server
	values   *nginxMap // of a map
	limits   int       // how many limit_req are in it
	dry      bool      // the value of limit_req_dry_run
	dryLine  int       // its line; 0 if the value is that of the outer context
	divided  bool      // all its requests are those of blocks in it
	returns  bool      // a return answers its requests, before limit_req count them
	breaks   bool      // some requests pass by the return directives behind
	broken   bool      // all of them do
}

// markOuter marks the outer context if all its requests are those of blocks like this one.
func (c *nginxContext) markOuter() {
	pattern, _ := c.location.pattern()
	switch {
	case c.outer == nil:
	case c.name == "http", c.name == "server" && c.outer.name != "server",
		c.name == "location" && c.outer.name == "server" && pattern == "/*":
		c.outer.divided = true
	}
}

// isDry reports whether limit_req_dry_run is on in a context.
func (c *nginxContext) isDry() bool {
	for ; c != nil; c = c.outer {
		if c.dryLine > 0 {
			return c.dry
		}
	}
	return false
}

// isAnswered reports whether a return of a context, or of its server, answers its requests before limit_req count them.
// Locations do not inherit it from others.
func (c *nginxContext) isAnswered() bool {
	return c != nil && (c.returns || c.isAnsweredAround())
}

// isAnsweredAround reports whether a return of its server, or of what is around that, answers the requests of a context.
func (c *nginxContext) isAnsweredAround() bool {
	for at := c.outer; at != nil; at = at.outer {
		if at.returns && at.name != "location" {
			return true
		}
	}
	return false
}

// limiting returns the context of the limit_req that count the requests of c, or nil.
func (c *nginxContext) limiting() *nginxContext {
	if c.isAnswered() {
		return nil
	}
	for c != nil && c.limits == 0 {
		c = c.outer
	}
	return c
}

// isRegexp reports whether a location is one of a regular expression.
func (l location) isRegexp() bool { return strings.HasPrefix(l.modifier, "~") }

// pattern returns the pattern of the paths of a location, if they have one.
func (l location) pattern() (pattern string, ok bool) {
	switch {
	case l.path == "" || strings.HasPrefix(l.path, "@") || strings.Contains(l.path, "*"):
		return "", false
	case l.modifier == "=":
		return l.path, true
	case l.modifier == "", l.modifier == "^~":
		return l.path + "*", true
	}
	return "", false
}

// serverDimension returns the dimension of conditions on servers: host, or server_name if some server has several names, or
// one that is no host.
func (n *nginx) serverDimension() string {
	if n.serversBy != "" {
		return n.serversBy
	}
	n.serversBy = "host"
	for _, c := range n.contexts {
		if c.name == "server" && !c.returns && c.server.isNamed() && (len(c.server.names) > 1 || !isHost(c.server.names[0])) {
			n.serversBy = "server_name"
		}
	}
	return n.serversBy
}

// isNamed reports whether a server has a name. One without has the hosts that no other server names.
func (s *server) isNamed() bool { return s != nil && len(s.names) > 0 }

// settleServers gives servers their values in conditions, once it is known which of them there are. A pattern is none: a server
// whose first name is one has a word in its place.
func (n *nginx) settleServers() {
	hosts, used := map[string]string{}, names{}
	for _, patterns := range []bool{false, true} {
		for _, c := range n.contexts {
			if c.name != "server" || n.servers < 2 || c.returns || !c.server.isNamed() {
				continue
			}
			name := strings.TrimPrefix(strings.ToLower(c.server.names[0]), ".")
			switch isPattern := strings.ContainsAny(name, "*~$") || len(name) > limit.MaxNameBytes; {
			case isPattern != patterns:
				continue
			case !isPattern:
				used[name], hosts[name] = 1, name
			case hosts[name] == "":
				hosts[name] = used.unique(word(name))
			}
			c.server.host = hosts[name]
		}
	}
}

// value returns the value of a server in conditions, or "" if it has none. Nil is the server of a configuration without one.
func (s *server) value() string {
	if s == nil {
		return ""
	}
	return s.host
}

// isHost reports whether a name of a server is one host: no pattern, which .example.com is too, no variable, and none that
// no host has.
func isHost(name string) bool {
	return name != "" && name[0] != '.' && name[len(name)-1] != '.' && !strings.ContainsAny(name, "*~$:/")
}
