package limitimport

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/limit"
)

// Envoy imports the rules of a configuration of envoyproxy/ratelimit. Keys become dimensions:
// tenantKey is the tenant, and remote_address the ip.
//
// All keys of a rule are in by, those with a fixed value too, so that rules of the same keys are of
// one level, where the most specific limit applies as it does there. The warnings of the configuration
// are remarks.
func Envoy(c *rlsconfig.Config, warnings rlsconfig.Problems, tenantKey string) Result {
	e := &envoy{tenantKey: tenantKey, tenantName: "tenant-key", domains: c.Domains()}
	for keys := EnvoyKeys(c); slices.Contains(keys, e.tenantName); {
		e.tenantName += "-"
	}
	for _, w := range warnings {
		text := w.Text
		if w.Field != "" {
			text = w.Field + ": " + text
		}
		e.remarkAt(w.File, w.Line, "%s", text)
	}
	for _, name := range e.domains {
		e.descriptors(name, nil, c.Domain(name).Descriptors())
	}
	e.group()
	for i := range e.rules {
		r := &e.rules[i]
		if r.action == "allow" {
			e.explainUnlimited(r)
		}
		if r.action == "allow" && (len(r.when) == 0 || !e.lifts(r, false)) {
			continue // no limit of its own level counts its requests
		}
		if !e.add(r.imported) {
			continue
		}
		if r.shadow && e.lifts(r, true) { // a shadow limit takes the place of none here
			allow := r.imported
			allow.id, allow.action, allow.rate, allow.algorithm, allow.shadow = r.id+"-allow", "allow", "", "", false
			e.add(allow)
		}
		e.explain(r)
	}
	if len(e.tenant)+len(e.shared) == 0 {
		e.remark(1, "there is no rule that can be imported")
		return e.result()
	}
	e.remarkOnceAt(e.rules[0].at(), "Envoy chooses the descriptors of a request, and each meets one rule at most; here a request meets every limit whose dimensions it has")
	return e.result()
}

// envoy is a configuration of envoyproxy/ratelimit that is being read.
type envoy struct {
	draft
	tenantKey  string // the key whose values are tenants
	tenantName string // the dimension of the key "tenant", if that is another one
	domains    []string
	rules      []envoyRule
}

// envoyRule is a rule with the descriptors of its levels.
type envoyRule struct {
	imported
	domain string
	levels []*rlsconfig.Descriptor
	rule   *rlsconfig.Rule
}

func (r *envoyRule) at() *rlsconfig.Descriptor { return r.levels[len(r.levels)-1] }

// remarkOnceAt adds a remark that is true of the whole configuration, at its first place.
func (e *envoy) remarkOnceAt(at *rlsconfig.Descriptor, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if e.isNew(Remark{Text: text}) {
		e.remarks = append(e.remarks, Remark{at.File, at.Line, text})
	}
}

// descriptors reads the descriptors of a level, and those below.
func (e *envoy) descriptors(domain string, above, level []*rlsconfig.Descriptor) {
	for _, d := range level {
		levels := append(above[:len(above):len(above)], d)
		if d.Rule != nil {
			e.rule(domain, levels, d.Rule)
		}
		e.checkHidden(levels, level)
		e.descriptors(domain, levels, d.Below)
	}
}

// checkHidden remarks on a descriptor whose requests meet no rule of a descriptor of the same level
// that is less exact: there a selection is final.
func (e *envoy) checkHidden(levels, siblings []*rlsconfig.Descriptor) {
	d := levels[len(levels)-1]
	for _, other := range siblings {
		if other == d || other.Key != d.Key || !d.Wins(other) || !meet(d.Value, other.Value) {
			continue
		}
		var lines []int
		for _, below := range limitsBelow(other, nil) {
			if !hasRule(d, below.keys) {
				lines = append(lines, below.line)
			}
		}
		switch len(lines) {
		case 0:
		case 1:
			e.remarkAt(d.File, d.Line, "requests of %s do not meet the rule of line %d there, since a selection is final; here its limit counts them too", limit.Shorten(text(d)), lines[0])
		default:
			e.remarkAt(d.File, d.Line, "requests of %s do not meet the rules of lines %s there, since a selection is final; here their limits count them too", limit.Shorten(text(d)), namedLines(lines))
		}
	}
}

// limitBelow is a limit at a descriptor or below it.
type limitBelow struct {
	keys []string // of the levels that lead to it
	line int
}

// limitsBelow returns the limits at a descriptor and below it.
func limitsBelow(d *rlsconfig.Descriptor, above []string) (all []limitBelow) {
	if d.Rule != nil && d.Rule.Limit != nil && !d.Rule.Limit.Unlimited {
		all = append(all, limitBelow{above, d.Line})
	}
	for _, b := range d.Below {
		all = append(all, limitsBelow(b, append(above[:len(above):len(above)], b.Key))...)
	}
	return all
}

// hasRule reports whether keys lead to a rule below a descriptor.
func hasRule(d *rlsconfig.Descriptor, keys []string) bool {
	if len(keys) == 0 {
		return d.Rule != nil
	}
	return slices.ContainsFunc(d.Below, func(b *rlsconfig.Descriptor) bool { return b.Key == keys[0] && hasRule(b, keys[1:]) })
}

// text returns a descriptor as key=value.
func text(d *rlsconfig.Descriptor) string {
	if d.Value == "" {
		return d.Key
	}
	return d.Key + "=" + d.Value
}

// rule reads a rule.
func (e *envoy) rule(domain string, levels []*rlsconfig.Descriptor, rule *rlsconfig.Rule) {
	r := envoyRule{domain: domain, levels: levels, rule: rule}
	r.id = rule.Path
	if len(e.domains) > 1 {
		r.id = domain + "-" + rule.Path
		r.when = append(r.when, condition{"domain", domain})
	}
	if !e.dimensions(&r) {
		return
	}
	switch p := rule.Limit; {
	case p == nil || p.Unlimited:
		r.action = "allow"
	case p.RequestsPerUnit == 0:
		r.action = "deny"
	default:
		if p.Name != "" {
			r.id = p.Name
		}
		r.rate, r.algorithm = fmt.Sprintf("%d/%s", p.RequestsPerUnit, envoyPeriods[p.Unit]), "fixed_window"
	}
	if r.action == "deny" && len(r.by) == 0 { // which no other limit can take the place of
		e.remarkAt(r.at().File, r.at().Line, "%s is not imported: it denies all its requests, and no other limit lifts that here: where none does there, write it with action: deny", limit.Shorten(rule.Path))
		return
	}
	r.shadow = rule.Shadow && r.action != "allow"
	e.rules = append(e.rules, r)
}

// envoyPeriods are the periods of the units, which do not follow the calendar.
var envoyPeriods = map[rlsconfig.Unit]string{
	rlsconfig.UnitSecond: "s", rlsconfig.UnitMinute: "m", rlsconfig.UnitHour: "h", rlsconfig.UnitDay: "24h",
	rlsconfig.UnitWeek: "7d", rlsconfig.UnitMonth: "30d", rlsconfig.UnitYear: "365d",
}

// dimensions sets by what a rule counts and for which requests, and reports whether a limits file can express it.
func (e *envoy) dimensions(r *envoyRule) bool {
	drop := func(format string, args ...any) bool {
		e.remarkAt(r.at().File, r.at().Line, "%s is not imported: %s", limit.Shorten(r.rule.Path), fmt.Sprintf(format, args...))
		return false
	}
	for _, d := range r.levels {
		name := e.dimension(d)
		if slices.Contains(r.by, name) || slices.ContainsFunc(r.when, func(c condition) bool { return c.dimension == name }) {
			return drop("a request has one value of %s, and this rule wants two", name)
		}
		if !d.Shared { // of a shared counter the value does not count
			r.by = append(r.by, name)
		}
		if d.Value == "" || strings.Trim(d.Value, "*") == "" {
			if d.Shared { // the request has to have one
				r.when = append(r.when, condition{name, "*"})
			}
			continue
		}
		if _, err := netip.ParsePrefix(d.Value); name == "ip" && err == nil {
			return drop("%s is one address, and no request has %s: for the network write a limit with when: {ip: %[2]s}", d.Key, limit.Shorten(d.Value))
		}
		if _, err := netip.ParseAddr(d.Value); name == "ip" && err != nil {
			return drop("a condition on ip is an address or a network, and not %s", limit.Shorten(d.Value))
		}
		if i := strings.Index(d.Value, "*"); i >= 0 && i < len(d.Value)-1 {
			return drop("a condition has one * at its end, and not %s", limit.Shorten(d.Value))
		}
		r.when = append(r.when, condition{name, d.Value})
	}
	if len(r.by) > maxBy {
		return drop("a limit counts by %d dimensions at most", maxBy)
	}
	return true
}

// dimension returns the dimension of a key.
func (e *envoy) dimension(d *rlsconfig.Descriptor) string {
	switch d.Key {
	case e.tenantKey:
		return "tenant"
	case "remote_address":
		return "ip"
	case "tenant":
		return e.tenantName
	case "op", "ip":
		return d.Key
	}
	return word(d.Key)
}

// EnvoyKeys returns the keys of the descriptors of a configuration, sorted.
func EnvoyKeys(c *rlsconfig.Config) []string {
	keys := map[string]bool{}
	var collect func(level []*rlsconfig.Descriptor)
	collect = func(level []*rlsconfig.Descriptor) {
		for _, d := range level {
			keys[d.Key] = true
			collect(d.Below)
		}
	}
	for _, name := range c.Domains() {
		collect(c.Domain(name).Descriptors())
	}
	return slices.Sorted(maps.Keys(keys))
}

// group gives limits of one level groups, so that those compete of which one alone applies there.
func (e *envoy) group() {
	levels := map[string][][]*envoyRule{} // the groups of each level
	for i := range e.rules {
		r := &e.rules[i]
		by := slices.Clone(r.by)
		slices.Sort(by)
		level := strings.Join(by, ",")
		n := slices.IndexFunc(levels[level], func(group []*envoyRule) bool {
			return !slices.ContainsFunc(group, r.conflicts)
		})
		if n < 0 {
			n = len(levels[level])
			levels[level] = append(levels[level], nil)
		}
		if levels[level][n] = append(levels[level][n], r); n > 0 {
			r.group = fmt.Sprintf("envoy-%d", n+1)
		}
	}
}

// conflicts reports whether two rules cannot be in one group: they apply beside each other there, or
// the other one applies there than in a group.
func (r *envoyRule) conflicts(other *envoyRule) bool {
	if !r.meets(other) {
		return false
	}
	return !r.alternative(other) || r.wins(other) != (r.compare(other) > 0) || r.compare(other) == 0
}

// alternative reports whether a descriptor meets one of two rules alone.
func (r *envoyRule) alternative(other *envoyRule) bool {
	return r.domain == other.domain && slices.EqualFunc(r.levels, other.levels, func(a, b *rlsconfig.Descriptor) bool { return a.Key == b.Key })
}

// meets reports whether one request could satisfy the conditions of both rules.
func (r *envoyRule) meets(other *envoyRule) bool {
	for _, a := range r.when {
		for _, b := range other.when {
			if a.dimension == b.dimension && !meet(a.pattern, b.pattern) {
				return false
			}
		}
	}
	return true
}

// meet reports whether some value could match two values or patterns. Without a value all match.
func meet(a, b string) bool {
	before, _, aOpen := strings.Cut(a, "*")
	other, _, bOpen := strings.Cut(b, "*")
	switch {
	case a == "" || b == "":
		return true
	case aOpen && bOpen:
		return strings.HasPrefix(before, other) || strings.HasPrefix(other, before)
	case aOpen:
		return strings.HasPrefix(b, before)
	case bOpen:
		return strings.HasPrefix(a, other)
	default:
		return a == b
	}
}

// wins reports whether a descriptor that both rules could hold meets this one there.
func (r *envoyRule) wins(other *envoyRule) bool {
	for i, d := range r.levels {
		if d != other.levels[i] {
			return d.Wins(other.levels[i])
		}
	}
	return false
}

// compare returns a number above 0 if the limit of this rule is the more specific one here, as
// docs/limits.md describes.
func (r *envoyRule) compare(other *envoyRule) int {
	rank := func(r *envoyRule) (all [3]int) {
		all[0] = len(r.when)
		for _, c := range r.when {
			length := len(strings.TrimSuffix(c.pattern, "*"))
			if length == len(c.pattern) {
				all[1]++
			}
			if addr, err := netip.ParseAddr(c.pattern); err == nil && c.dimension == "ip" {
				length = addr.BitLen()
			}
			all[2] += length
		}
		return all
	}
	a, b := rank(r), rank(other)
	return slices.Compare(a[:], b[:])
}

// lifts reports whether a rule takes requests of another one that has a limit, or that enforces one.
func (e *envoy) lifts(r *envoyRule, enforced bool) bool {
	return slices.ContainsFunc(e.rules, func(other envoyRule) bool {
		return other.action != "allow" && !(enforced && other.shadow) && r.alternative(&other) && r.meets(&other) && r.wins(&other)
	})
}

// explain remarks on all of a rule that the limits file cannot say.
func (e *envoy) explain(r *envoyRule) {
	at := r.at()
	for _, d := range r.levels {
		switch name := e.dimension(d); name {
		case "tenant", "op", "ip":
			e.remarkOnceAt(d, "the key %s is the %s", limit.Shorten(d.Key), name)
		default:
			e.remarkOnceAt(d, "services send DIM %s with the value of %s; a request without it is not counted", name, limit.Shorten(d.Key))
		}
	}
	if len(e.domains) > 1 {
		e.remarkOnceAt(at, "services send DIM domain, since there are several domains")
	}
	if r.rule.Quota && r.action != "allow" {
		e.remarkAt(at.File, at.Line, "%s denies by itself here, and not only together with the other quotas of a request", limit.Shorten(r.id))
	}
	if replaced := e.replaced(r); len(replaced) > 0 {
		e.remarkAt(at.File, at.Line, "%s applies beside the limits that it replaces there: %s", limit.Shorten(r.id), limit.Shorten(strings.Join(replaced, ", ")))
	}
	if r.rule.Metadata != nil {
		e.remarkAt(at.File, at.Line, "metadata of %s is not imported", limit.Shorten(r.id))
	}
	e.explainBeside(r)
}

// replaced returns the names that a rule replaces, of those that there are in its domain.
func (e *envoy) replaced(r *envoyRule) []string {
	return slices.DeleteFunc(slices.Clone(r.rule.Replaces), func(name string) bool {
		return !slices.ContainsFunc(e.rules, func(o envoyRule) bool {
			return o.rule.Domain == r.rule.Domain && o.rule.Limit != nil && o.rule.Limit.Name == name
		})
	})
}

// explainBeside remarks on limits that apply beside that of a rule, and not there.
func (e *envoy) explainBeside(r *envoyRule) {
	for i := range e.rules {
		other := &e.rules[i]
		if other == r || other.action == "allow" || !r.alternative(other) || !r.meets(other) || !r.wins(other) {
			continue
		}
		if other.group != r.group || len(other.by) != len(r.by) {
			e.remarkAt(r.at().File, r.at().Line, "requests of %s count by %s too, which does not apply to them there", limit.Shorten(r.id), limit.Shorten(other.id))
		}
	}
}
