package limitimport

import (
	"maps"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// site is a host, with the servers that have its requests.
type site struct {
	host    string // its value in conditions, or "" for the hosts that no other site has
	servers []*siteServer
	areas   []*area         // of paths, outer ones first
	labeled []*area         // of locations that no condition on the path can have
	zones   map[string]bool // by which nginx counts some of its requests
}

// siteServer is a server, with its locations by their paths.
type siteServer struct {
	root            *nginxContext
	exact, prefixes map[string]*nginxContext
	named           map[string]*nginxContext
	labeled         []*nginxContext
}

// area is requests of a site that nginx counts alike: those to whose paths no longer pattern of the site applies, or those of a
// location that no condition on the path can have.
type area struct {
	host    string
	pattern string        // "" for all paths
	outer   *area         // with the next shorter pattern that has its paths; nil for all paths
	context *nginxContext // the location of a labeled one
	label   string        // of the location, or ""
	within  []*area       // of a labeled one: the areas of paths in which nginx may give it requests; nil of an area of paths
	uses    map[string]use
}

// paths returns the areas of paths that have requests of an area.
func (a *area) paths() []*area {
	if a.within == nil {
		return []*area{a}
	}
	return a.within
}

// use is how nginx counts the requests of an area by a zone.
type use struct {
	request *limitRequest
	others  []*limitRequest // of other servers of the site, whose bursts are no smaller
	burst   int64
	dry     bool
}

// with returns how two servers of a site count: the smaller burst is that of both.
func (u use) with(o use) use {
	larger := o.request
	if o.burst < u.burst {
		larger, u.request, u.burst = u.request, o.request, o.burst
	}
	u.others = append(u.others, larger)
	u.dry = u.dry && o.dry
	return u
}

// maxPattern bounds the paths of conditions: values of dimensions are no longer.
const maxPattern = limit.MaxNameBytes - 1

// findSites finds the sites, and how nginx counts their requests. The first site has no host. The error says that there are too many
// areas.
func (n *nginx) findSites() ([]*site, error) {
	first := &site{}
	sites, byHost := []*site{first}, map[string]*site{"": first}
	for _, s := range n.siteServers() {
		host := s.root.server.value()
		if byHost[host] == nil {
			byHost[host] = &site{host: host}
			sites = append(sites, byHost[host])
		}
		byHost[host].servers = append(byHost[host].servers, s)
	}
	byContext := n.byContext()
	for _, s := range sites {
		if err := n.findAreas(s, first, byContext); err != nil {
			return nil, err
		}
	}
	if len(first.servers) == 0 {
		n.shareUses(sites)
	}
	for _, s := range sites {
		s.zones = map[string]bool{}
		for _, a := range slices.Concat(s.areas, s.labeled) {
			for zone := range a.uses {
				s.zones[zone] = true
			}
		}
	}
	return sites, nil
}

// maxAreas bounds the areas of all sites: each has those of the first one too.
const maxAreas = 200_000

// siteServers returns the servers. A configuration without one is one.
func (n *nginx) siteServers() (servers []*siteServer) {
	byServer := map[*server]*siteServer{}
	add := func(root *nginxContext) {
		s := &siteServer{root: root, exact: map[string]*nginxContext{}, prefixes: map[string]*nginxContext{}, named: map[string]*nginxContext{}}
		byServer[root.server] = s
		servers = append(servers, s)
	}
	for _, c := range n.contexts {
		if c.name == "server" && c.server != nil && !c.returns {
			add(c)
		}
	}
	if len(servers) == 0 {
		root := n.contexts[0]
		for _, c := range n.contexts {
			if c.name == "http" {
				root = c
			}
		}
		add(root)
	}
	for _, c := range n.contexts {
		if s := byServer[c.server]; s != nil && c.name == "location" {
			s.addLocation(c)
		}
	}
	return servers
}

// addLocation adds a location of a server. A named one is apart: its requests have the paths of other locations.
func (s *siteServer) addLocation(c *nginxContext) {
	pattern, ok := c.location.pattern()
	switch {
	case strings.HasPrefix(c.location.path, "@"):
		s.named[c.location.path] = c
	case !ok || len(pattern) > maxPattern || c.isInsideRegexp():
		s.labeled = append(s.labeled, c)
	case c.location.modifier == "=" && s.exact[c.location.path] == nil:
		s.exact[c.location.path] = c
	case c.location.modifier != "=" && s.prefixes[c.location.path] == nil:
		s.prefixes[c.location.path] = c
	}
}

// isInsideRegexp reports whether a context is inside of a location of a regular expression.
func (c *nginxContext) isInsideRegexp() bool {
	for c = c.outer; c != nil; c = c.outer {
		if c.location.isRegexp() {
			return true
		}
	}
	return false
}

// locate returns the context that nginx gives the requests of a pattern, unless it is labeled.
func (s *siteServer) locate(pattern string) *nginxContext {
	path, isPrefix := strings.CutSuffix(pattern, "*")
	if pattern == "" {
		path, isPrefix = "/", true
	}
	if c := s.exact[path]; !isPrefix && c != nil {
		return c
	}
	for end := len(path); end > 0; end-- {
		if c := s.prefixes[path[:end]]; c != nil {
			return c
		}
	}
	return s.root
}

// patterns returns the patterns of the locations of a site, but for that of all paths.
func (s *site) patterns() map[string]bool {
	all := map[string]bool{}
	for _, of := range s.servers {
		for path := range of.exact {
			all[path] = true
		}
		for path := range of.prefixes {
			if path != "/" {
				all[path+"*"] = true
			}
		}
	}
	return all
}

// findAreas finds the areas of a site. Limits of the first site, without a host, may apply to its requests: so it has the patterns
// of that one too.
func (n *nginx) findAreas(s, first *site, byContext map[*nginxContext][]*limitRequest) error {
	patterns := s.patterns()
	maps.Copy(patterns, first.patterns())
	if n.areas += 1 + len(patterns); n.areas > maxAreas {
		return errTooLarge
	}
	root := n.newArea(s, "", byContext)
	s.areas = []*area{root}
	around := []*area{root} // those with the paths of the last one
	for _, pattern := range slices.SortedFunc(maps.Keys(patterns), comparePatterns) {
		on := condition{"path", pattern}
		for len(around) > 1 && !(condition{"path", around[len(around)-1].pattern}).includes(on) {
			around = around[:len(around)-1]
		}
		a := n.newArea(s, pattern, byContext)
		a.outer = around[len(around)-1]
		s.areas, around = append(s.areas, a), append(around, a)
	}
	for _, of := range s.servers {
		for _, c := range of.labeled {
			if n.looked += len(s.areas); n.looked > maxSettled {
				return errTooLarge
			}
			n.addLabeled(s, of, c, byContext)
		}
	}
	return nil
}

// comparePatterns orders patterns so that each stands behind those that include it.
func comparePatterns(a, b string) int {
	pathA, isPrefixA := strings.CutSuffix(a, "*")
	pathB, isPrefixB := strings.CutSuffix(b, "*")
	if pathA != pathB {
		return strings.Compare(pathA, pathB)
	}
	switch {
	case isPrefixA == isPrefixB:
		return 0
	case isPrefixA:
		return -1
	}
	return 1
}

// newArea returns an area of paths. Several servers of one site have the limits of each, as their requests cannot be told apart.
func (n *nginx) newArea(s *site, pattern string, byContext map[*nginxContext][]*limitRequest) *area {
	a := &area{host: s.host, pattern: pattern, uses: map[string]use{}}
	for i, of := range s.servers {
		uses := usesOf(of.locate(pattern), byContext)
		if i > 0 && !maps.EqualFunc(uses, a.uses, func(u, o use) bool { return u.burst == o.burst && u.dry == o.dry }) {
			n.remarkSeveral(s)
		}
		for zone, u := range uses {
			if o, both := a.uses[zone]; both {
				u = o.with(u)
			}
			a.uses[zone] = u
		}
	}
	return a
}

// remarkSeveral remarks on servers of one host that count otherwise.
func (n *nginx) remarkSeveral(s *site) {
	line := s.servers[1].root.line
	if s.host == "" {
		n.remark(line, "several servers have the hosts that no server names: here the limits of each count for requests of all of them, by one zone those with the smallest burst")
		return
	}
	n.remark(line, "several servers have the name %s: here the limits of each count for requests of all of them, by one zone those with the smallest burst", limit.Shorten(s.host))
}

// usesOf returns how nginx counts the requests of a context, by the zone.
func usesOf(c *nginxContext, byContext map[*nginxContext][]*limitRequest) map[string]use {
	uses := map[string]use{}
	for _, r := range byContext[c.limiting()] {
		if r.imported {
			uses[r.zone] = use{request: r, burst: r.burst, dry: c.isDry()}
		}
	}
	return uses
}

// addLabeled adds an area for a location that no condition on the path can have.
func (n *nginx) addLabeled(s *site, of *siteServer, c *nginxContext, byContext map[*nginxContext][]*limitRequest) {
	a := &area{host: s.host, context: c, uses: usesOf(c, byContext)}
	for at := c.outer; at != nil && at.name == "location"; at = at.outer {
		if pattern, ok := at.location.pattern(); ok && pattern != "/*" && len(pattern) <= maxPattern && !at.isInsideRegexp() {
			a.pattern = pattern
			break
		}
	}
	base, mayMatch := condition{"path", a.pattern}, c.location.mayMatch()
	for _, o := range s.areas {
		inside := a.pattern == "" || base.includes(condition{"path", o.pattern})
		if inside && c.isTriedFor(of.locate(o.pattern)) && mayMatch(strings.TrimSuffix(o.pattern, "*")) {
			a.within = append(a.within, o)
		}
	}
	if len(a.within) > 0 {
		s.labeled = append(s.labeled, a)
	}
}

// isTriedFor reports whether nginx tries a labeled location for requests that it would give a context otherwise: not if that has the
// modifier =, or if the one beside the location that is or has it has ^~.
func (c *nginxContext) isTriedFor(other *nginxContext) bool {
	if other.location.modifier == "=" {
		return false
	}
	for at := other; at != nil; at = at.outer {
		if at.outer == c.outer && at.name == "location" {
			return at.location.modifier != "^~"
		}
	}
	return true
}

// shareUses has the requests of all hosts counted by what most servers count by, or by what stands outside of several, so that one
// limit counts them.
func (n *nginx) shareUses(sites []*site) {
	type counted struct {
		zone  string
		burst int64
	}
	servers, order := map[counted][]use{}, []counted{}
	for _, s := range sites[1:] {
		for _, zone := range slices.Sorted(maps.Keys(s.areas[0].uses)) {
			u := s.areas[0].uses[zone]
			by := counted{zone, u.burst}
			if servers[by] == nil && !u.dry {
				order = append(order, by)
			}
			if !u.dry {
				servers[by] = append(servers[by], u)
			}
		}
	}
	most := map[string]int{}
	for _, by := range order {
		uses := servers[by]
		isShared := 2*len(uses) >= len(sites)-1 || uses[0].request.server == nil
		if len(uses) > 1 && isShared && len(uses) > most[by.zone] {
			most[by.zone] = len(uses)
			sites[0].areas[0].uses[by.zone] = uses[0]
		}
	}
}
