package limit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit/bucket"
)

// checkDefaults warns of settings that a limits file leaves to their defaults.
func (c *compiler) checkDefaults() {
	if !c.doc.DefaultPlan.Set() && len(c.doc.Plans) > 0 {
		c.warn(1, "default_plan", "tenants that are not listed have only the shared limits: name their plan, which may have no limits ([])")
	}
	var passed, days []*Limit
	for _, l := range c.limits {
		c.warnDenyAll(l)
		c.warnAllowAll(l)
		if l.Action != ActionLimit {
			continue
		}
		if !c.opts.Strict && l.layer != layerOverride {
			c.addUndecided(l)
		}
		c.warnLocal(l)
		c.warnShare(l)
		if l.CountsDays() {
			days = append(days, l)
		}
		if optional := l.optional(); optional != "" && !l.missSet && !c.warnMissing(l, optional) {
			passed = append(passed, l)
		}
	}
	c.warnDays(days)
	c.warnMinutes()
	c.noteMissing(passed)
	c.noteMistakenDims()
	c.findInClear()
	c.noteSecrets()
	c.noteMethods()
	c.warnPatterns()
	c.warnPairs()
	c.warnLeases()
	c.warnAutoLocal()
	c.noteAllows()
	c.noteUnreached()
	c.reportUndecided()
}

// checkStrict checks a limit by the strict rules.
func (c *compiler) checkStrict(spec *RuleSpec, l *Limit) {
	if !c.opts.Strict || l.Action != ActionLimit {
		return
	}
	if l.layer != layerOverride { // the limit itself is reported
		c.addUndecided(l)
	}
	if l.CountsHashes() && !c.opts.IPSecret {
		counts := "addresses"
		if !l.CountsAddresses() {
			counts = "hashed values"
		}
		c.fail(spec.Line, "by", "strict: a limit counts %s, so a secret to hash them with is needed: set privacy.ip_secret_file (--privacy-ip-secret-file)", counts)
	}
}

// addUndecided adds a limit without on_error to those that the strict rules report, once if plans share it.
func (c *compiler) addUndecided(l *Limit) {
	if l.onErrSet || c.undecidedEntries[l.entry()] {
		return
	}
	if c.undecidedEntries == nil {
		c.undecidedEntries = map[entry]bool{}
	}
	c.undecidedEntries[l.entry()] = true
	c.undecided = append(c.undecided, l)
}

// mostUndecided bounds the limits that the warning of reportUndecided names, which each start of a proxy has.
const mostUndecided = 3

// reportUndecided reports the limits without on_error, in one mistake by the strict rules, which demand it, and in one warning
// otherwise.
func (c *compiler) reportUndecided() {
	if len(c.undecided) == 0 {
		return
	}
	var names []string
	most := maxNamed
	if !c.opts.Strict {
		most = mostUndecided
	}
	for _, l := range c.undecided[:min(len(c.undecided), most)] {
		name := "one without an id"
		if l.ID != "" {
			name = Quote(l.ID)
		}
		names = append(names, fmt.Sprintf("%s (%s)", name, c.doc.At(l.Line)))
	}
	all, line := strings.Join(names, ", "), c.undecided[0].Line
	if more := len(c.undecided) - len(names); more > 0 {
		all += fmt.Sprintf(" and %d more", more)
	}
	switch one := len(c.undecided) == 1; {
	case c.opts.Strict && one:
		c.fail(line, "on_error", "strict: say open or closed")
	case c.opts.Strict:
		c.fail(line, "on_error", "strict: say open or closed in each of %d limits: %s", len(c.undecided), all)
	case one:
		c.warn(line, "on_error", "%s relies on the default, open: say open or closed", all)
	default:
		c.warn(line, "on_error", "%d limits rely on the default, open: say open or closed in %s", len(c.undecided), all)
	}
}

// warnDenyAll warns of a limit of a plan, or of all, that denies whatever is asked. For a tenant it is meant.
func (c *compiler) warnDenyAll(l *Limit) {
	with, all := l.holdsForAll()
	if l.Action != ActionDeny || l.Mode != ModeEnforce || l.share > 0 || !all || len(l.by) > 0 || l.broken || l.layer != layerShared && l.layer != layerPlan {
		return
	}
	of := "all tenants"
	if l.layer == layerPlan {
		of = "plan " + l.Plan
	}
	c.warn(l.Line, "action", "%s denies every request of %s%s: say when: with those that it denies", Quote(l.ID), of, with)
}

// holdsForAll reports whether the conditions of l hold for any tenant, op and address, and returns what a request has to have for that,
// as " with an op", or "". A condition that any value of another dimension meets is one on callers that send it.
func (l *Limit) holdsForAll() (with string, all bool) {
	var needs []string
	for i := range l.when {
		switch w := &l.when[i]; {
		case w.kind == propertyIP && w.net.Bits() == 0 && w.net.Addr().Is4():
			needs = append(needs, "an address of IPv4")
		case w.kind == propertyIP && w.net.Bits() == 0:
			needs = append(needs, "an address of IPv6")
		case w.kind == propertyIP || w.kind == propertyExtra || w.exact || w.prefix != "":
			return "", false
		case w.kind != propertyTenant:
			needs = append(needs, "an "+w.name)
		}
	}
	if len(needs) == 0 {
		return "", true
	}
	return " with " + strings.Join(needs, " and "), true
}

// optional returns a dimension of its own by which an enforced limit counts, without which a request that meets its
// conditions passes the limit, or "".
func (l *Limit) optional() (name string) {
	if l.Missing != MissingPass || l.Mode != ModeEnforce {
		return ""
	}
	for _, d := range l.by {
		if d.text != "op" && d.text != "ip" && !l.hasConditionOn(d) {
			name = d.text
		}
	}
	return name
}

// hasConditionOn reports whether a request that meets the conditions of l has one of the choices of a dimension.
func (l *Limit) hasConditionOn(d dimension) bool {
	return slices.ContainsFunc(l.when, func(c condition) bool {
		return slices.ContainsFunc(d.choices, func(p property) bool { return p.kind == c.kind && p.name == c.name })
	})
}

// noteMissing notes once for a file that requests without a dimension are not limited by some limits.
func (c *compiler) noteMissing(passed []*Limit) {
	if len(passed) == 0 {
		return
	}
	l, more := passed[0], ""
	ids := c.quotedIDs(passed)
	others := ids[1:]
	if n := len(others); n > maxNamed {
		more = fmt.Sprintf(", nor those without their dimensions by %s and %d more", strings.Join(others[:maxNamed], ", "), n-maxNamed)
	} else if n > 0 {
		more = ", nor those without their dimensions by " + strings.Join(others, ", ")
	}
	c.note(l.Line, "missing", "requests without %s are not limited by %s%s: missing: deny or missing: share limits them, missing: pass says that it is meant", l.optional(), ids[0], more)
}

// quotedIDs returns the ids of limits, each once. One of several limits, in more than one plan, has the lines of the others behind it.
func (c *compiler) quotedIDs(limits []*Limit) (ids []string) {
	var order []string
	lines := map[string][]int{}
	for _, l := range limits {
		if lines[l.ID] == nil {
			order = append(order, l.ID)
		}
		if !slices.Contains(lines[l.ID], l.Line) && len(lines[l.ID]) <= maxNamed+1 {
			lines[l.ID] = append(lines[l.ID], l.Line)
		}
	}
	for _, id := range order {
		text, others := Quote(id), lines[id][1:]
		for i, line := range others[:min(len(others), maxNamed)] {
			text += [...]string{" (and on ", ", "}[min(i, 1)] + c.doc.At(line)
		}
		switch {
		case len(others) > maxNamed:
			text += " and more)"
		case len(others) > 0:
			text += ")"
		}
		ids = append(ids, text)
	}
	return ids
}

// warnDays warns once for a file of limits that keep their counts for a day or more.
func (c *compiler) warnDays(days []*Limit) {
	if len(days) == 0 {
		return
	}
	ids := c.quotedIDs(days)
	keep, them := "keep their counts", "them"
	if len(ids) == 1 {
		keep, them = "keeps its count", "it"
	}
	more := ""
	if n := len(ids) - maxNamed; n > 0 {
		ids, more = ids[:maxNamed], fmt.Sprintf(" and %d more", n)
	}
	c.warn(days[0].Line, "rate", "%s%s %s for a day or more, and a Redis without AOF forgets %s in a restart: set its appendonly to yes", strings.Join(ids, ", "), more, keep, them)
	c.warnings[len(c.warnings)-1].Redis = true
}

// warnMissing warns of a limit that a request can avoid by leaving out an optional dimension, if no
// other limit of its plan applies to the request then. It reports whether it has.
func (c *compiler) warnMissing(l *Limit, optional string) bool {
	if l.Plan == "" {
		return false
	}
	effect := "holds it"
	for _, other := range c.plans[l.Plan].limits {
		if !other.EnforcedAlways() || other.Action != ActionLimit || other.ID == l.ID {
			continue
		}
		if len(other.when) == 0 && (len(other.by) == 0 || other.Missing != MissingPass && l.hasLevelOf(other)) { // these share its bucket, or are denied
			return false
		}
		if other.Missing != MissingPass || other.optional() == "" {
			effect = "counts all of these together" // each op by itself, for example
		}
	}
	c.warn(l.Line, "missing", "a request without %s passes %s over, and no other limit of plan %s %s: say missing: deny or missing: share, or missing: pass if that is meant", optional, Quote(l.ID), l.Plan, effect)
	return true
}

// CountsDays reports whether l counts in windows of a day or more, or has a bucket that takes as long to fill: a store without an AOF
// forgets in a restart what was used of it.
func (l *Limit) CountsDays() bool {
	const day = 86400e6
	if !l.hasRate() || l.Params.Count == 0 || l.Mode == ModeOff || l.Store == PlacementLocal { // a count of 0 is a mistake
		return false
	}
	if l.Params.Algorithm == bucket.AlgorithmTokenBucket {
		return l.Params.FullTime() >= day
	}
	return l.Params.Period >= day
}

// takesPlace reports whether a applies in place of b to a request that matches both.
func takesPlace(a, b *Limit) bool {
	return a.groupKey() == b.groupKey() && compareRank(a, b) < 0 && canMeet(a, b)
}

// mostCompared bounds the pairs of limits that are compared for warnings: a file has few limits at
// one level, unless it is made to have many.
const mostCompared = 100_000

// warnPairs warns of pairs of limits of one plan and level whose effect is seldom meant, at most once
// for each limit.
func (c *compiler) warnPairs() {
	levels := map[string][]*Limit{}
	for _, l := range c.set.Limits {
		if l.Mode != ModeOff && l.Action != ActionDeny && !l.broken {
			key := l.Plan + ":" + strings.Join(l.Level(), ",")
			levels[key] = append(levels[key], l)
		}
	}
	compared := 0
	for _, a := range c.set.Limits {
		if len(a.when) == 0 || a.Mode == ModeOff || a.Action == ActionDeny || a.broken {
			continue
		}
		var lifted *Limit
		level := levels[a.Plan+":"+strings.Join(a.Level(), ",")]
		for _, b := range level {
			if compared++; compared > mostCompared {
				return
			}
			if b.Action != ActionLimit || a.Mode != b.Mode || a.slots != b.slots || a == b || !canMeet(a, b) {
				continue
			}
			if c.warnPlace(a, b) || c.noteAllow(a, b, level) {
				break
			}
			if lifted == nil && a.liftsOther(b) {
				compared += len(level)
				if !slices.ContainsFunc(level, func(l *Limit) bool { return l != a && takesPlace(l, a) && l.conditionsIn(a, b) }) {
					lifted = b
				}
			}
		}
		c.noteLifted(a, lifted)
	}
}

// warnPlace warns if a takes the place of b for some of the requests that share its buckets: those
// requests do not count there, so that both limits together admit more than b.
func (c *compiler) warnPlace(a, b *Limit) bool {
	if a.Action != ActionLimit || !takesPlace(a, b) || a.splitsBuckets() || slices.Contains(a.Replaces, b.ID) {
		return false
	}
	c.warn(a.Line, "when", "%s takes the place of %s, which counts by %s too: requests that %[1]s counts are not counted by %[2]s. Say group: %[4]s to count them by both, or replaces: [%[5]s] if that is meant",
		Quote(a.ID), Quote(b.ID), strings.Join(a.Level(), ", "), a.ID, b.ID)
	return true
}

// splitsBuckets reports whether all requests of a bucket agree in the conditions of l, because l
// counts by all dimensions that it has conditions on.
func (l *Limit) splitsBuckets() bool {
	for i := range l.when {
		if !slices.Contains(l.Level(), l.when[i].name) {
			return false
		}
	}
	return true
}

// Expect describes the cost of one limit for the store, for capacity planning.
type Expect struct {
	Limit *Limit
	Text  string
}

// ExpectedKeys lists, for every limit that counts, where its buckets live and
// how many there will be.
func (s *Set) ExpectedKeys() []Expect {
	var out []Expect
	for _, l := range s.All() {
		if l.Action != ActionLimit || l.Mode == ModeOff {
			continue
		}
		e := Expect{Limit: l}
		switch {
		case l.Store == PlacementLocal:
			e.Text = "none, kept in the proxy"
		case l.field:
			e.Text = fmt.Sprintf("%d fields in one string per tenant", l.fieldCount())
			if l.fieldCount() == 1 {
				e.Text = "one field in one string per tenant"
			}
		case l.byTenant && len(l.by) == 0:
			e.Text = "one key per tenant"
		case l.byTenant:
			e.Text = fmt.Sprintf("one key per tenant and %s", l.byText())
		case len(l.by) == 0:
			e.Text = "one key"
		default:
			e.Text = "one key per " + l.byText()
		}
		if l.slots {
			e.Text += ", for RL.ACQUIRE alone"
		}
		out = append(out, e)
	}
	return out
}

func (l *Limit) fieldCount() int {
	n := 1
	for _, d := range l.by {
		n *= len(d.choices[0].values)
	}
	return n
}

func (l *Limit) byText() string {
	var names []string
	for _, d := range l.by {
		names = append(names, d.text)
	}
	return strings.Join(names, " and ")
}
