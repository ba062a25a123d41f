package limitimport

import (
	"fmt"
	"slices"

	"github.com/limitgate/limitgate/limit"
)

// liftThere begins the advice to lift a limit for some requests.
const liftThere = "to lift it there, write "

// writeLimit and noLimit begin the advice where no limit can be advised.
const (
	writeLimit = "write a limit for it"
	noLimit    = "no limit lifts it there"
)

// liftedBy says how to lift the limit of a limit_req for a region of a location. Line is that of the remark.
func (n *nginx) liftedBy(r *limitRequest, c *nginxContext, region []condition, line int) string {
	allow, beside, why := n.lifting(r, c, region)
	if why != "" {
		return why
	}
	n.advised = append(n.advised, region...)
	if at, known := n.nameAdvised(&allow, line); known {
		return fmt.Sprintf("the limit advised on line %d takes its place there too", at)
	}
	text := allow.line()
	if beside == nil || c.isDry() { // in dry run nginx denies nothing there
		return liftThere + text + n.liftedWith(r, c)
	}
	own := allow
	own.action, own.rate, own.burst, own.replaces = "", beside.limit.rate, beside.limit.burst, n.replacedBy(&allow)
	text = writeLimit + " with the rate that nginx has there, " + own.line()
	if beside.exempting != nil {
		text += fmt.Sprintf("; it may count requests too for which $%s is empty", limit.Shorten(beside.variable))
	}
	return text
}

// replacedBy returns the ids of the limits of the file whose place a limit takes for some requests.
func (n *nginx) replacedBy(l *imported) (ids []string) {
	for _, o := range n.shared {
		if o.action == "" && !o.shadow && l.takesPlaceOf(&o) && o.meets(l.when) {
			ids = append(ids, o.id)
		}
	}
	if len(ids) > mostReplaced {
		return nil
	}
	return ids
}

// remarkRegexps remarks on limit_req of locations of regular expressions.
func (n *nginx) remarkRegexps() {
	for i := range n.requests {
		if r := &n.requests[i]; r.regexp {
			n.remark(r.line, "%s%s", r.said[0], n.byZone(r))
		}
	}
}

// byZone advises a limit for a limit_req of a location that no condition has, by the dimension zone, or returns "": requests have
// one value of it, so that one limit_req of a location can have it, and other limit_req of its zone share its units.
func (n *nginx) byZone(r *limitRequest) string {
	shared := func(o limitRequest) bool { return o.zone == r.zone && o.context != r.context }
	if r.context.limits > 1 || r.exempting != nil || n.sharesHost(r.server) || slices.ContainsFunc(n.requests, shared) {
		return ""
	}
	one := r.limit
	one.id, one.when = r.zone, slices.Concat([]condition{{"zone", r.zone}}, n.region(&nginxContext{server: r.server}), r.limit.when)
	if n.ties(&one, false) {
		return ""
	}
	n.nameAdvised(&one, r.line)
	n.advised = append(n.advised, one.when...)
	sends := "services send DIM zone " + quoted(r.zone) + " with its requests"
	for _, dimension := range one.by {
		if n.advised = append(n.advised, condition{dimension, ""}); dimension != "ip" {
			sends += ", and DIM " + dimension + " with what nginx has in the key"
		}
	}
	return "; write " + one.line() + ", and " + sends
}

// limitBeside returns the limit_req, or nil, whose rate a limit needs that stands in the place of an allow, as nginx counts it in
// a context, and reports whether either can be advised.
func (n *nginx) limitBeside(allow *imported, r *limitRequest, c *nginxContext, region []condition, counted func(*nginxContext) bool) (beside *limitRequest, ok bool) {
	beside, lifted := n.countedBeside(allow, r, c, counted)
	hidden := n.hiddenIn(c, region, allow)
	switch {
	case lifted, len(hidden) > 1, n.compared > maxHidden:
		return nil, false
	case len(hidden) == 0:
		return beside, !n.ties(allow, beside == nil)
	}
	there := imported{when: region}
	return hidden[0], beside == nil && there.hasDimensionsOf(&hidden[0].limit) && slices.Equal(hidden[0].limit.by, r.limit.by) && !n.ties(allow, false)
}

// otherServers returns a limit_req of another server than that of a context whose limit an allow for the context would lift, or
// nil. It lifts those of the hosts of another one if the server has no host of its own.
func (n *nginx) otherServers(allow *imported, c *nginxContext) *limitRequest {
	if n.servers < 2 || n.hostOf(c.server) != "" {
		return nil
	}
	for i := range n.requests {
		o := &n.requests[i]
		n.compared++
		if o.imported && o.server != nil && o.server != c.server && o.limit.hasPlaceOf(allow) && o.limit.meets(allow.when) && !o.limit.takesPlaceOf(allow) {
			return o
		}
	}
	return nil
}

// liftedWith names the locations of regular expressions where nginx counts by a limit of the place of that of r, for some of whose
// requests it is lifted too if it is lifted for a location, or returns "".
func (n *nginx) liftedWith(r *limitRequest, c *nginxContext) string {
	var paths []string
	if c.location.modifier == "=" || r.server != nil && r.server != c.server {
		return "" // nginx tries no other location for it, or never counts them
	}
	for _, o := range n.contexts {
		if c.keepsRegexp(o) && len(n.longer(c, o.outer)) == 0 {
			continue // nginx does not try it for these requests
		}
		if o.location.isRegexp() && o.server == c.server && o.location.mayMatch(c.location.path) && !o.isDry() && n.countsThere(r, o) {
			paths = append(paths, fmt.Sprintf("%s on line %d", limit.Shorten(o.location.path), o.location.line))
		}
	}
	if len(paths) == 0 {
		return ""
	}
	return ", which lifts it for requests there that location " + named(paths) + " matches too"
}

// countsThere reports whether nginx counts in a context by a limit_req that repeats r, or whose limit has the place of that of r.
func (n *nginx) countsThere(r *limitRequest, c *nginxContext) bool {
	from := c.limiting()
	return slices.ContainsFunc(n.requests, func(o limitRequest) bool {
		n.compared++
		return o.context == from && o.repeats(r) || o.imported && o.limit.hasPlaceOf(&r.limit) && slices.Contains(o.counts, c)
	})
}

// notImported returns the line of a limit_req that nginx counts in a context and that is not imported, or 0.
func (n *nginx) notImported(c *nginxContext) int {
	from := c.limiting()
	for i := range n.requests {
		if r := &n.requests[i]; from != nil && r.context == from && !r.imported && !c.isDry() {
			return r.line
		}
	}
	return 0
}

// hiddenIn returns the limit_req that nginx counts in a context, and whose limit, of another place than beside, does not apply to requests
// of its region here: another one takes its place there.
func (n *nginx) hiddenIn(c *nginxContext, region []condition, beside *imported) (hidden []*limitRequest) {
	from := c.limiting()
	for i := range n.requests {
		o := &n.requests[i]
		if o.context == from && o.imported && !o.limit.shadow && !o.limit.hasPlaceOf(beside) && !n.counts(&o.limit, region) {
			hidden = append(hidden, o)
		}
	}
	return hidden
}

// ties reports whether a limit would be as specific as one of the file, for some requests. Two that allow may be.
func (n *nginx) ties(l *imported, allows bool) bool {
	return slices.ContainsFunc(n.shared, func(o imported) bool {
		n.compared++
		return !(allows && o.action == "allow") && o.tiesWith(l)
	})
}

// countedBeside returns another limit_req of the level and group of an allow that nginx counts in a context, or nil. It reports
// whether the allow would lift one in another context for which counted holds.
func (n *nginx) countedBeside(allow *imported, r *limitRequest, c *nginxContext, counted func(*nginxContext) bool) (beside *limitRequest, lifted bool) {
	for i := range n.requests {
		o := &n.requests[i]
		if n.compared++; !o.imported || !o.limit.hasPlaceOf(&r.limit) || o.limit.equals(&r.limit) || !slices.ContainsFunc(o.counts, counted) {
			continue
		}
		switch {
		case c.isDry() && slices.ContainsFunc(o.counts, func(at *nginxContext) bool { return counted(at) && !at.isDry() }):
			return nil, true
		case slices.Contains(o.counts, c):
			beside = o
		case !o.limit.takesPlaceOf(allow):
			return nil, true
		}
	}
	return beside, false
}

// remarkAdvised says what services send for the conditions of limits that remarks advise, where no limit of the file has them.
func (n *nginx) remarkAdvised() {
	used := map[string]bool{"op": true, "ip": true, "zone": true} // each remark on a zone says so itself
	for i := range n.requests {                                   // a remark on each says so, also where its limit is that of a context around it
		r := &n.requests[i]
		pattern, ok := r.context.location.pattern()
		used["path"] = used["path"] || r.imported && ok && pattern != "/*"
		used[n.serverDimension()] = used[n.serverDimension()] || r.imported && r.server != nil && n.hostOf(r.server) != ""
	}
	for _, l := range slices.Concat(n.shared, n.tenant) {
		for _, on := range l.when {
			used[on.dimension] = true
		}
	}
	for _, on := range n.advised {
		if !used[on.dimension] && on.pattern != "" {
			used[on.dimension] = true
			n.remark(n.remarks[0].Line, "limits that these lines advise have conditions on %s, which services send as DIM %[1]s", on.dimension)
		}
	}
}
