package limitimport

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// maxOuterCompared bounds how many pairs of limit_req remarkOuter compares.
const maxOuterCompared = 100_000

// remarkOuter remarks on limit_req of outer contexts that count here where an inner one stands: nginx leaves
// the outer one out there, and a limit here takes the place only of one that counts by the same. One limit_req of
// a context speaks for all of them, an imported one if there is one.
func (n *nginx) remarkOuter() {
	byContext := n.byContext()
	compared, done := 0, map[*nginxContext]bool{}
	for i := range n.requests {
		inner := &n.requests[i]
		beside := byContext[inner.context]
		if _, mistake := n.zoneOf(inner); mistake != "" || done[inner.context] || inner.context.isAnswered() || !inner.imported && slices.ContainsFunc(beside, (*limitRequest).isImported) {
			continue
		}
		done[inner.context] = true
		for c := inner.context.outer; c != nil; c = c.outer {
			for _, outer := range byContext[c] {
				if compared++; compared > maxOuterCompared {
					return
				}
				n.remarkLeftOut(inner, outer, beside)
			}
		}
	}
}

// isImported reports whether a limit_req is imported.
func (r *limitRequest) isImported() bool { return r.imported }

// byContext returns the limit_req of each context.
func (n *nginx) byContext() map[*nginxContext][]*limitRequest {
	out := map[*nginxContext][]*limitRequest{}
	for i := range n.requests {
		r := &n.requests[i]
		out[r.context] = append(out[r.context], r)
	}
	return out
}

// remarkLeftOut remarks on an outer limit_req if it counts here where an inner one stands, and is none of those
// beside the inner one.
func (n *nginx) remarkLeftOut(inner, outer *limitRequest, beside []*limitRequest) {
	counts := func(c *nginxContext) bool { return n.counts(&outer.limit, n.region(c)) }
	if !outer.imported || isOneOf(outer, beside) || !slices.ContainsFunc(inner.context.counted, counts) {
		return
	}
	how := "both count"
	if !inner.imported {
		how = "that one counts"
	}
	lift := ""
	if region := n.region(inner.context); inner.imported && counts(inner.context) && len(region) > 0 {
		if advice := n.liftedBy(outer, inner.context, region, inner.line); !strings.HasPrefix(advice, writeLimit) {
			lift = ": " + advice
		}
	}
	where := "where this limit_req stands"
	if inner.inherited > 0 {
		where = fmt.Sprintf("in the %s on line %d, which inherits this limit_req", inner.context.name, inner.context.line)
	}
	n.remark(inner.line, "%s, nginx leaves out that of zone %s on line %d; here %s%s", where, limit.Shorten(outer.zone), outer.line, how, lift)
}

// liftThere begins the advice to lift a limit for some requests.
const liftThere = "to lift it there, write "

// isOneOf reports whether the limit of a limit_req is that of one of others.
func isOneOf(r *limitRequest, others []*limitRequest) bool {
	return slices.ContainsFunc(others, func(o *limitRequest) bool {
		return o == r || r.isInheritedWith(o) || o.imported && o.limit.equals(&r.limit)
	})
}

// remarkBeside remarks on the locations that nginx matches before that of a limit_req, and whose requests
// have its limit here. remarkOuter remarks on those inside of it.
func (n *nginx) remarkBeside() {
	byContext := n.byContext()
	for i := range n.requests {
		r := &n.requests[i]
		if !r.imported || r.context.name != "location" || r.context.location.modifier == "=" {
			continue
		}
		longer := map[*nginxContext][]*nginxContext{}
		for _, c := range n.contexts {
			if c.name != "location" || c.isInside(r.context) || !c.matchesBefore(r.context) || isOneOf(r, byContext[c.limiting()]) {
				continue
			}
			regions := []*nginxContext{c}
			if c.location.isRegexp() && r.context.keepsRegexp(c) {
				if longer[c.outer] == nil {
					longer[c.outer] = n.longer(r.context, c.outer)
				}
				regions = longer[c.outer]
			}
			for _, at := range regions {
				n.remarkBesideOf(r, c, n.region(at), byContext[c.limiting()])
			}
		}
	}
}

// remarkAnswered remarks on locations whose requests a return answers, and that have limits of outer contexts here.
func (n *nginx) remarkAnswered() {
	for _, c := range n.contexts {
		if !c.returns || c.name != "location" || c.outer.isAnswered() {
			continue
		}
		region := n.region(c)
		for i := range n.requests {
			if r := &n.requests[i]; r.imported && c.isInside(r.context) && n.counts(&r.limit, region) {
				n.remark(c.line, "nginx answers the requests of location %s by return, before it counts them; here those of zone %s on line %d count: %s", limit.Shorten(c.location.path), limit.Shorten(r.zone), r.line, n.liftedBy(r, c, region, c.line))
			}
		}
	}
}

// matchesBefore reports whether nginx matches a location before another one of its server, for some paths.
func (c *nginxContext) matchesBefore(other *nginxContext) bool {
	switch {
	case c == other || c.server != other.server:
		return false
	case !c.location.isRegexp():
		return strings.HasPrefix(c.location.path, other.location.path)
	case c.outer.name == "location" && !c.outer.location.isRegexp() && other != c.outer && !other.isInside(c.outer) &&
		!strings.HasPrefix(c.outer.location.path, other.location.path):
		return false // it is tried only for requests of its outer location
	}
	return c.location.mayMatch(other.location.path)
}

// mayMatch reports whether a regular expression may match a path that begins with prefix: the letters that it begins with,
// and prefix, agree as far as both go.
func (l location) mayMatch(prefix string) bool {
	begin := l.begin()
	if l.modifier == "~*" {
		begin, prefix = strings.ToLower(begin), strings.ToLower(prefix)
	}
	n := min(len(begin), len(prefix))
	return begin[:n] == prefix[:n]
}

// begin returns letters with which all paths begin that a regular expression matches.
func (l location) begin() string {
	text, anchored := strings.CutPrefix(l.path, "^")
	if !anchored || hasAlternatives(text) {
		return ""
	}
	begin := []byte{}
	for len(text) > 0 {
		letter, width := text[0], 1
		if letter == '\\' && len(text) > 1 && !isWord(text[1]) {
			letter, width = text[1], 2
		} else if !isWord(letter) && letter != '/' && letter != '-' {
			break
		}
		if text = text[width:]; text != "" && strings.IndexByte("*?{", text[0]) >= 0 {
			break // the letter may be missing
		}
		begin = append(begin, letter)
	}
	return string(begin)
}

// hasAlternatives reports whether a regular expression is one of several, or may be: a | stands outside of parentheses.
func hasAlternatives(text string) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			return strings.Contains(text, "|")
		case '(':
			depth++
		case ')':
			depth--
		case '|':
			if depth <= 0 {
				return true
			}
		}
	}
	return false
}

// isWord reports whether a byte is a letter, a digit or _.
func isWord(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// keepsRegexp reports whether a location, or the one around it, has the modifier ^~, by which nginx does not try
// a regular expression beside it.
func (c *nginxContext) keepsRegexp(other *nginxContext) bool {
	for ; c != nil; c = c.outer {
		if c.outer == other.outer {
			return c.location.modifier == "^~"
		}
	}
	return false
}

// longer returns the locations in a context that have paths of another location, and for which nginx tries the
// regular expressions in that context.
func (n *nginx) longer(other, in *nginxContext) []*nginxContext {
	out := []*nginxContext{}
	for _, c := range n.contexts {
		if c.name == "location" && c.outer == in && c.location.modifier == "" && strings.HasPrefix(c.location.path, other.location.path) {
			out = append(out, c)
		}
	}
	return out
}

// liftedBy says how to lift the limit of a limit_req for a region of a location. An allow lifts all limits of its level and
// group, so that it is no advice where another one may count there, or where nginx counts some of its requests. Line is that of
// the remark.
func (n *nginx) liftedBy(r *limitRequest, c *nginxContext, region []condition, line int) string {
	if c.location.isRegexp() {
		return "a limits file has no regular expressions"
	}
	there, allow := imported{when: region}, r.limit.allow()
	allow.when = withoutRoot(region)
	for _, on := range r.limit.when {
		if !slices.ContainsFunc(region, func(o condition) bool { return o.dimension == on.dimension }) {
			allow.when = append(allow.when, on) // of one method
		}
	}
	counted := func(c *nginxContext) bool { return !c.location.isRegexp() && there.covers(n.region(c)) }
	if other := n.otherServers(&allow, c); other != nil {
		return fmt.Sprintf("%s: a limit that lifts it lifts that of line %d too", writeLimit, other.line)
	}
	if !allow.takesPlaceOf(&r.limit) || slices.ContainsFunc(r.context.counted, counted) || n.sharesHost(c.server) && n.hostOf(c.server) != "" {
		return writeLimit
	}
	if at := n.notImported(c); at > 0 {
		return fmt.Sprintf("%s: that on line %d, which nginx has there, is not imported", writeLimit, at)
	}
	beside, lifted := n.countedBeside(&allow, r, c, counted)
	hidden := n.hiddenIn(c, region, allow.place())
	if lifted || n.ties(&allow) || len(hidden) > 1 || len(hidden) == 1 && (beside != nil || !slices.Equal(hidden[0].limit.by, r.limit.by)) || n.compared > maxHidden {
		return writeLimit
	}
	exempt := ""
	if len(hidden) == 1 {
		beside = hidden[0]
		if beside.exempting != nil {
			exempt = fmt.Sprintf("; it counts requests too for which $%s is empty", limit.Shorten(beside.variable))
		}
	}
	if c.isDry() {
		beside, exempt = nil, "" // nginx denies nothing there
	}
	n.advised = append(n.advised, region...)
	if at, known := n.nameAdvised(&allow, line); known {
		return fmt.Sprintf("the limit advised on line %d takes its place there too", at)
	}
	var b strings.Builder
	allow.write(&b, "")
	text := strings.TrimSpace(b.String())
	if beside != nil {
		rate := fmt.Sprintf("rate: %s, burst: %d, on_error: open", beside.limit.rate, beside.limit.burst)
		return writeLimit + " with the rate that nginx has there, " + strings.Replace(text, "action: allow", rate, 1) + exempt
	}
	return liftThere + text + n.liftedWith(c)
}

// otherServers returns a limit_req of another server than that of a context whose limit an allow for the context would lift, or
// nil. It lifts those of the hosts of another one if the server has no host of its own.
func (n *nginx) otherServers(allow *imported, c *nginxContext) *limitRequest {
	if n.servers < 2 || n.hostOf(c.server) != "" {
		return nil
	}
	place := allow.place()
	for i := range n.requests {
		o := &n.requests[i]
		n.compared++
		if o.imported && o.server != nil && o.server != c.server && o.limit.place() == place && o.limit.meets(allow.when) && !o.limit.takesPlaceOf(allow) {
			return o
		}
	}
	return nil
}

const writeLimit = "write a limit for it"

// liftedWith names the locations of regular expressions for some of whose requests the limit of r is lifted too if it is for a
// location, and which have limits in nginx, or returns "".
func (n *nginx) liftedWith(c *nginxContext) string {
	var paths []string
	for _, o := range n.contexts {
		if o.location.isRegexp() && o.server == c.server && o.location.mayMatch(c.location.path) && o.limiting() != nil && !o.isDry() {
			paths = append(paths, fmt.Sprintf("%s on line %d", limit.Shorten(o.location.path), o.location.line))
		}
	}
	if len(paths) == 0 {
		return ""
	}
	return ", which lifts it for requests there that location " + named(paths) + " matches too"
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

// hiddenIn returns the limit_req that nginx counts in a context, and whose limit, of another place, does not apply to requests
// of its region here: another one takes its place there.
func (n *nginx) hiddenIn(c *nginxContext, region []condition, place string) (hidden []*limitRequest) {
	from := c.limiting()
	for i := range n.requests {
		o := &n.requests[i]
		if o.context == from && o.imported && !o.limit.shadow && o.limit.place() != place && !n.counts(&o.limit, region) {
			hidden = append(hidden, o)
		}
	}
	return hidden
}

// ties reports whether a limit of the file would be as specific as another one, for some requests.
func (n *nginx) ties(l *imported) bool {
	place := l.place()
	return slices.ContainsFunc(n.shared, func(o imported) bool {
		n.compared++
		return o.compareRank(l) == 0 && o.meets(l.when) && o.place() == place
	})
}

// countedBeside returns another limit_req of the level and group of an allow that nginx counts in a context, or nil. It reports
// whether the allow would lift one in another context for which counted holds.
func (n *nginx) countedBeside(allow *imported, r *limitRequest, c *nginxContext, counted func(*nginxContext) bool) (beside *limitRequest, lifted bool) {
	place := r.limit.place()
	for i := range n.requests {
		o := &n.requests[i]
		if n.compared++; !o.imported || o.limit.place() != place || o.limit.equals(&r.limit) || !slices.ContainsFunc(o.context.counted, counted) {
			continue
		}
		switch {
		case slices.Contains(o.context.counted, c):
			beside = o
		case !o.limit.takesPlaceOf(allow):
			return nil, true
		}
	}
	return beside, false
}

// remarkBesideOf remarks on a location that nginx matches before that of a limit_req, for requests of a region,
// which have others there.
func (n *nginx) remarkBesideOf(r *limitRequest, c *nginxContext, region []condition, others []*limitRequest) {
	at, path := r.context.location, limit.Shorten(c.location.path)
	admits := r.allows && !c.isDry() && slices.ContainsFunc(others, func(o *limitRequest) bool { return n.isAdmittedBy(r, o, region) })
	switch {
	case admits:
		n.remark(c.location.line, "nginx matches location %s before %s, where limit_req_dry_run admits all: here its requests are admitted too; write a limit for it", path, limit.Shorten(at.path))
	case n.counts(&r.limit, region):
		n.remark(c.location.line, "nginx matches location %s before %s, whose limit by zone %s its requests have here too: %s", path, limit.Shorten(at.path), limit.Shorten(r.zone), n.liftedBy(r, c, region, c.location.line))
	}
}

// isAdmittedBy reports whether requests of a region, which have another limit_req in nginx, do not count for
// it here, as the limit that admits those of r is more specific.
func (n *nginx) isAdmittedBy(r, other *limitRequest, region []condition) bool {
	allow := r.limit.allow()
	return n.counts(&allow, region) && (!other.imported || other.limit.place() == allow.place() && !other.limit.shadow && allow.compareRank(&other.limit) < 0)
}

// remarkShared remarks on limits that were imported of several limit_req with one zone.
func (n *nginx) remarkShared() {
	for _, name := range slices.Sorted(maps.Keys(n.uses)) {
		if lines := n.uses[name]; len(lines) > 1 {
			of := "the limit_req on " + listOfLines(lines) + " share"
			if slices.Max(lines) == lines[0] && n.isInherited(name, lines[0]) {
				of = "the locations that inherit this limit_req share"
			}
			n.remark(lines[0], "%s the units of zone %s in nginx; here each has its own, so that they admit more together", of, limit.Shorten(name))
		}
	}
}

// isInherited reports whether limits of a zone are of one limit_req that locations inherit.
func (n *nginx) isInherited(zone string, line int) bool {
	return slices.ContainsFunc(n.requests, func(r limitRequest) bool { return r.zone == zone && r.line == line && r.inherited > 0 })
}

// listOfLines lists lines in order, as "lines 3, 7".
func listOfLines(lines []int) string {
	lines = slices.Compact(slices.Clone(lines))
	if len(lines) == 1 {
		return "line " + namedLines(lines)
	}
	return "lines " + namedLines(lines)
}

// remarkDry remarks on limit_req_dry_run in contexts that take their limit_req from an outer one, where
// it is not on: the limit is one for all of them.
func (n *nginx) remarkDry() {
	byContext := n.byContext()
	for _, c := range n.contexts {
		if c.dryLine == 0 || !c.dry || c.limits > 0 {
			continue
		}
		from := c.limiting()
		if from == nil || from.isDry() || !from.enforced {
			continue
		}
		var lines []int
		for _, r := range byContext[from] {
			if r.imported {
				lines = append(lines, r.line)
			}
		}
		if len(lines) > 0 {
			n.remark(c.dryLine, "limit_req_dry_run is on for some requests of limit_req on %s, which is enforced here for all of them", listOfLines(lines))
		}
	}
}
