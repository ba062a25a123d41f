package limitimport

import (
	"slices"
	"strings"
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
	// watched and enforced report that limit_req_dry_run is on, or off, for some requests that the limit_req of
	// the context count.
	watched, enforced bool
	counted           []*nginxContext // those whose requests the limit_req of the context count
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

// counting returns the contexts whose limit_req count some requests.
func (n *nginx) counting() map[*nginxContext]bool {
	from := map[*nginxContext]bool{}
	for _, c := range n.contexts {
		if c.hasRequests() && !c.divided {
			from[c.limiting()] = true
		}
	}
	return from
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

// isInside reports whether a context is inside of another one.
func (c *nginxContext) isInside(outer *nginxContext) bool {
	for c = c.outer; c != nil; c = c.outer {
		if c == outer {
			return true
		}
	}
	return false
}

// findModes finds out which requests limit_req count, and for which of them limit_req_dry_run is on.
func (n *nginx) findModes() {
	for _, c := range n.contexts {
		from := c.limiting()
		if from == nil || c.divided || !c.hasRequests() {
			continue
		}
		from.counted = append(from.counted, c)
		if c.isDry() {
			from.watched = true
		} else {
			from.enforced = true
		}
	}
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

// region returns conditions that the requests of a context meet: on the path that the innermost location with
// one has, and on the host.
func (n *nginx) region(c *nginxContext) []condition {
	region, known := n.regions[c]
	if known {
		return region
	}
	for at := c; at != nil; at = at.outer {
		if pattern, ok := at.location.pattern(); ok {
			region = append(region, condition{"path", pattern})
			break
		}
		if strings.HasPrefix(at.location.path, "@") {
			break // requests of any path
		}
	}
	if c.server != nil {
		if host := n.hostOf(c.server); host != "" {
			region = append(region, condition{n.serverDimension(), host})
		}
	}
	region = slices.Clip(region)
	if n.regions != nil {
		n.regions[c] = region
	}
	return region
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

// isNamed reports whether a server has a name, and not that of requests that no other server names.
func (s *server) isNamed() bool { return s != nil && len(s.names) > 0 && s.names[0] != "_" }

// settleServers keeps the values of servers in conditions, and from here on the conditions of contexts: servers do not change
// any more.
func (n *nginx) settleServers() {
	for _, c := range n.contexts {
		if c.server != nil {
			c.server.host = n.hostOf(c.server)
		}
	}
	n.regions = map[*nginxContext][]condition{}
}

// hostOf returns the value of a server in conditions, or "" if it has none. $server_name has no dot in front.
func (n *nginx) hostOf(s *server) string {
	if n.regions != nil && s != nil {
		return s.host
	}
	if n.servers < 2 || !s.isNamed() || strings.ContainsAny(s.names[0], "*~$") {
		return ""
	}
	return strings.TrimPrefix(strings.ToLower(s.names[0]), ".")
}

// isHost reports whether a name of a server is one host: no pattern, which .example.com is too, no variable, and none that
// no host has.
func isHost(name string) bool {
	return name != "" && name[0] != '.' && name[len(name)-1] != '.' && !strings.ContainsAny(name, "*~$:/")
}
