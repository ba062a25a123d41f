package rlsconfig

import (
	"fmt"
	"maps"
	"slices"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// OnDenied is what a descriptor takes from its counter if its request is denied.
type OnDenied uint8

const (
	// OnDeniedDefault takes nothing for a descriptor without hits of its own, and its hits for one
	// with them.
	OnDeniedDefault OnDenied = iota
	// OnDeniedNothing takes nothing.
	OnDeniedNothing
	// OnDeniedCount takes the hits.
	OnDeniedCount
)

var onDeniedWords = map[string]OnDenied{"nothing": OnDeniedNothing, "count": OnDeniedCount}

// Counted is a limit with the end of the names of its counters.
type Counted struct {
	Name  string // of a further limit
	Limit *limit.Limit
	// Suffix is behind the name that AppendCounter returns. Each rule has another one for each
	// algorithm, since their counters differ.
	Suffix string
}

// maxAlso bounds the further limits of a rule, each of which costs as much as a descriptor.
const maxAlso = 4

// extend gives rules and domains what the extensions say of them.
func (c *compiler) extend(x *config.RLSExtensions) {
	if x == nil || c.mistakes > 0 {
		return
	}
	byPath := map[[2]string][]*Rule{}
	for _, r := range c.config.limited {
		byPath[[2]string{r.Domain, r.Path}] = append(byPath[[2]string{r.Domain, r.Path}], r)
	}
	for i := range x.Domains {
		spec := &x.Domains[i]
		at := place{file: x.File, line: spec.Name.Line, field: "domains." + plain(spec.Name.Value)}
		d := c.config.domains[spec.Name.Value]
		if d == nil {
			c.warn(at, "there is no such domain, so this has no effect; %s", didYouMean(spec.Name.Value, slices.Sorted(maps.Keys(c.config.domains)), "the names are those of domain: in the files"))
			continue
		}
		d.OnDenied, d.tenantKey = c.onDenied(at, spec.OnDenied), spec.TenantKey.Value
		c.checkTenantKey(d, at, spec.TenantKey)
		d.FailsClosed = spec.OnError.Value == "closed"
		if on := spec.OnError; on.Set() && on.Value != "closed" && on.Value != "open" {
			c.fail(at.in("on_error").on(on.Line), "%s is not one of closed, open", limit.Quote(on.Value))
		}
		c.extendRules(d, at, spec.Rules, byPath)
		for _, r := range c.config.limited {
			if r.Domain == d.Name {
				c.inherit(d, r)
			}
		}
	}
}

// checkTenantKey warns of a key that no descriptor of the domain has.
func (c *compiler) checkTenantKey(d *Domain, at place, key limit.Text) {
	if !key.Set() {
		return
	}
	keys := d.root.allKeys(nil)
	if !slices.Contains(keys, key.Value) {
		c.warn(at.in("tenant_key").on(key.Line), "no descriptor of the files has this key, so it has no effect on their limits; %s",
			didYouMean(key.Value, keys[:min(len(keys), maxNear)], "the keys are those of the descriptors in the files"))
	}
}

// extendRules gives the rules of a domain what the extensions say of them.
func (c *compiler) extendRules(d *Domain, above place, specs []config.RLSRule, byPath map[[2]string][]*Rule) {
	for i := range specs {
		spec := &specs[i]
		at := above.in("rules." + plain(spec.Path.Value)).on(spec.Path.Line)
		rules := byPath[[2]string{d.Name, spec.Path.Value}]
		if rules == nil {
			c.warn(at, "no limit of the domain has this path, so this has no effect; %s", didYouMean(spec.Path.Value, pathsOf(byPath, d.Name), "limitgate limits lint FOLDER lists the paths"))
		}
		for _, r := range rules {
			c.extendRule(r, at, spec)
		}
	}
}

// pathsOf returns the paths of a domain.
func pathsOf(byPath map[[2]string][]*Rule, domain string) (paths []string) {
	for key := range byPath {
		if key[0] == domain {
			paths = append(paths, key[1])
		}
	}
	slices.Sort(paths)
	return paths
}

// extendRule gives a rule its own limit and further ones.
func (c *compiler) extendRule(r *Rule, at place, spec *config.RLSRule) {
	r.OnDenied = c.onDenied(at, spec.OnDenied)
	if r.Limit.Unlimited || r.Limit.RequestsPerUnit == 0 {
		c.fail(at, "the rule counts nothing, as it is unlimited or admits no request: remove this, or give it a limit")
		return
	}
	own := spec.Spec
	own.ID.Value = r.Domain + "." + r.Path
	own.Rate = limit.Text{Value: c.rateOf(r, at, spec.Calendar), Line: spec.Path.Line}
	if spec.Calendar.Value == "true" && !own.Algorithm.Set() {
		own.Algorithm = limit.Text{Value: "fixed_window", Line: spec.Path.Line}
	}
	r.Own = c.counted(at, &own, "")
	if len(spec.Also) > maxAlso {
		c.fail(at.in("also"), "there are %d further limits, at most %d", len(spec.Also), maxAlso)
		return
	}
	seen := map[string]bool{}
	r.Also = nil
	for i := range spec.Also {
		also := &spec.Also[i]
		at := at.in(fmt.Sprintf("also[%d]", i)).on(also.Line)
		switch id := also.ID.Value; {
		case !limit.ValidID(id):
			c.fail(at.in("id"), "a further limit needs an id: 1 to 64 letters, digits, dots, dashes and underscores")
		case seen[id]:
			c.fail(at.in("id"), "%s is the id of two limits of the rule", limit.Quote(id))
		default:
			seen[id] = true
			further := *also
			further.ID.Value = r.Domain + "." + r.Path + "." + id
			r.Also = append(r.Also, c.counted(at, &further, id))
		}
	}
}

// rateOf returns the rate of a rule as limits write it.
func (c *compiler) rateOf(r *Rule, at place, calendar limit.Text) string {
	at = at.in("calendar").on(calendar.Line)
	switch {
	case calendar.Value == "true" && r.Limit.Unit == UnitDay:
		return fmt.Sprintf("%d/day", r.Limit.RequestsPerUnit)
	case calendar.Value == "true" && r.Limit.Unit == UnitMonth:
		return fmt.Sprintf("%d/month", r.Limit.RequestsPerUnit)
	case calendar.Value == "true":
		c.fail(at, "only days and months follow the calendar, and the unit of the rule is %s: remove it", r.Limit.Unit)
	case calendar.Set() && calendar.Value != "false":
		c.fail(at, "%s is not one of false, true", limit.Quote(calendar.Value))
	}
	return fmt.Sprintf("%d/%ds", r.Limit.RequestsPerUnit, r.Limit.Unit.Seconds())
}

// counted compiles a limit. Its Limit is nil if it has mistakes.
func (c *compiler) counted(at place, spec *limit.RuleSpec, name string) Counted {
	suffix := ""
	if name != "" {
		suffix = ";;" + name
	}
	l, problems := limit.CompileDescriptor(spec)
	for _, p := range problems {
		c.fail(at.in(p.Field).on(p.Line), "%s", p.Text)
	}
	if l == nil {
		return Counted{}
	}
	if name != "" || l.Params.Algorithm != bucket.AlgorithmFixedWindow {
		suffix += ";;" + string(l.Params.Algorithm.Code())
	}
	return Counted{name, l, suffix}
}

// inherit gives a rule what its domain has and it does not say itself.
func (c *compiler) inherit(d *Domain, r *Rule) {
	if r.OnDenied == OnDeniedDefault {
		r.OnDenied = d.OnDenied
	}
	if !d.FailsClosed || r.Limit.Unlimited || r.Limit.RequestsPerUnit == 0 {
		return
	}
	if r.Own.Limit == nil {
		line := max(1, r.Line) // a resource has none
		closed := limit.RuleSpec{ID: limit.Text{Value: r.Domain + "." + r.Path, Line: line}, Rate: limit.Text{Value: c.rateOf(r, place{}, limit.Text{}), Line: line}}
		r.Own = c.counted(place{file: r.File, line: r.Line}, &closed, "")
	}
	for _, l := range append([]Counted{r.Own}, r.Also...) {
		if l.Limit != nil {
			l.Limit.CloseByDefault()
		}
	}
}

// onDenied returns the meaning of a word, which may be absent.
func (c *compiler) onDenied(at place, t limit.Text) OnDenied {
	v, ok := onDeniedWords[t.Value]
	if t.Set() && !ok {
		c.fail(at.in("on_denied").on(t.Line), "%s is not one of count, nothing", limit.Quote(t.Value))
	}
	return v
}
