package limitimport

import (
	"maps"
	"slices"
	"strings"
)

// passing is a directive that sends requests on to another location.
type passing struct {
	context *nginxContext
	line    int
	target  string // a path or a named location, or "" if it is not known
	first   bool   // before limit_req count them, as rewrite does
	answers bool   // it sends on what a return answers, as error_page does
}

// schemes begin the targets of a rewrite that answers with a redirect.
var schemes = []string{"http://", "https://", "$scheme"}

// redirects notes that a rewrite answers some requests, or sends them on.
func (n *nginx) redirects(words []nginxWord) {
	if len(words) < 3 {
		return
	}
	to, last := words[2].text, words[len(words)-1].text
	if slices.ContainsFunc(schemes, func(scheme string) bool { return strings.HasPrefix(to, scheme) }) {
		last = "redirect"
	}
	c := n.context
	if c.name == "if" {
		c = c.outer
	}
	if last == "last" || last == "break" {
		n.context.markBreak()
	}
	switch {
	case last == "redirect" || last == "permanent":
		n.answering = append(n.answering, answering{c, words[0].line})
	case last == "break" && c.name != "server": // the path changes, and the location stays
		n.changesPaths = true
	default: // of a server, a break too is before nginx chooses the location
		n.changesPaths = n.changesPaths || last == "break"
		n.passing = append(n.passing, passing{c, words[0].line, passingTarget(to), true, false})
	}
}

// markBreak notes that nginx ends with a break, or with a rewrite that has the flag last or break, the directives rewrite and return of a
// context for some requests.
func (c *nginxContext) markBreak() {
	c.breaks = true
	if c.name == "if" {
		c.outer.breaks = true
	}
}

// passes notes that try_files or error_page sends requests on, where its last word is a path or a named location.
func (n *nginx) passes(words []nginxWord) {
	if last := words[len(words)-1].text; len(words) > 2 && last != "" && strings.ContainsAny(last[:1], "/@$") {
		n.passing = append(n.passing, passing{n.context, words[0].line, passingTarget(last), false, words[0].text == "error_page"})
	}
}

// passingTarget returns the path of a target without its arguments, or "" if it has variables, or is too long for a location here.
func passingTarget(to string) string {
	path, _, _ := strings.Cut(to, "?")
	if strings.Contains(path, "$") || len(path) > maxPattern || !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "@") {
		return ""
	}
	return path
}

// countedBy is how nginx counts the requests of a context.
type countedBy struct {
	limiting *nginxContext
	dry      bool
}

func (c *nginxContext) countedBy() countedBy {
	limiting := c.limiting()
	return countedBy{limiting, limiting != nil && c.isDry()}
}

// remarkPassing remarks once on what sends requests on to where nginx counts them otherwise. Limits count a request once, so that
// those of a location with a limit are counted already, unless they are sent on before.
func (n *nginx) remarkPassing() {
	if !slices.ContainsFunc(n.requests, func(r limitRequest) bool { return r.imported }) {
		return
	}
	servers, counts := n.countsOfServers()
	var lines []int
	for _, p := range n.passing {
		of := []*server{p.context.server}
		if p.context.server == nil { // around all servers
			of = slices.Collect(maps.Keys(servers))
		}
		if slices.ContainsFunc(of, func(s *server) bool { return n.sendsOn(p, servers[s], counts[s]) }) {
			lines = append(lines, p.line)
		}
	}
	if len(lines) > 0 {
		slices.Sort(lines)
		n.remark(lines[0], "nginx sends requests on by rewrite, try_files or error_page on %s, and counts them where they arrive; here they count by the path that services send", listOfLines(lines))
	}
}

// sendsOn reports whether a directive sends requests of a server on to where they count otherwise. All is how its requests count.
func (n *nginx) sendsOn(p passing, s *siteServer, all map[countedBy]bool) bool {
	if len(all) < 2 {
		return false // all requests of the server count alike
	}
	target, known := n.target(s, p.target)
	own, isLocation := p.context.countedBy(), p.context.name == "location"
	switch {
	case known && !p.first && target.limiting == nil, known && isLocation && target == own:
		return false
	case p.first:
		return true
	case isLocation:
		return (own.limiting == nil || n.mayNotCount(own.limiting)) && (p.answers || !p.context.isAnswered())
	}
	return all[countedBy{}]
}

// mayNotCount reports whether nginx may count a request of a context by none of its limit_req, as their keys may be empty.
func (n *nginx) mayNotCount(c *nginxContext) bool {
	for i := range n.requests {
		r := &n.requests[i]
		if z := n.zones[r.zone]; r.context == c && z != nil && r.exempting == nil {
			variables, literal, ok := splitKey(z.key)
			filled := func(variable string) bool { return slices.Contains(filledVariables, variable) }
			if !ok || literal || slices.ContainsFunc(variables, filled) {
				return false
			}
		}
	}
	return true
}

// countsOfServers returns the servers, and how each counts the requests of its locations.
func (n *nginx) countsOfServers() (servers map[*server]*siteServer, counts map[*server]map[countedBy]bool) {
	servers, counts = map[*server]*siteServer{}, map[*server]map[countedBy]bool{}
	for _, s := range n.siteServers() {
		of := s.root.server
		servers[of], counts[of] = s, map[countedBy]bool{s.locate("/*").countedBy(): true}
	}
	for _, c := range n.contexts {
		if all := counts[c.server]; all != nil && c.name == "location" {
			all[c.countedBy()] = true
		}
	}
	return servers, counts
}

// target returns how a server counts the requests of a path or a named location, if that is known.
func (n *nginx) target(s *siteServer, path string) (by countedBy, known bool) {
	if n.looked += len(s.labeled); path == "" || n.looked > maxSettled {
		return countedBy{}, false
	}
	if strings.HasPrefix(path, "@") {
		c := s.named[path]
		if c == nil {
			return countedBy{}, false
		}
		return c.countedBy(), true
	}
	c := s.locate(path)
	for _, other := range s.labeled {
		if mayMatch := other.location.mayMatch(); other.isTriedFor(c) && mayMatch(path) {
			return countedBy{}, false
		}
	}
	return c.countedBy(), true
}
