package edge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// describe warns of what the limits of a rule say, and the rule does not.
func (w *waf) describe(r rule) {
	client := "an address"
	if r.header != "" {
		client = "a key in " + r.header
	}
	for _, l := range r.of.sum {
		said := fmt.Sprintf("rule %s: %d requests of %s in %d s", r.name, r.limit, client, r.window)
		if r.op != nil {
			said = fmt.Sprintf("rule %s: %d requests %s of %s in %d s", r.name, r.limit, r.op, client, r.window)
		}
		w.handle(l, "%s", strings.Join(append([]string{said}, losses(l, r)...), "; "))
	}
}

// losses lists what a rule does not say of a limit.
func losses(l *limit.Limit, r rule) (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	add("a count of the last %d s takes the place of the %s %s", r.window, l.Undivided.Algorithm, l.Describe())
	if r.least {
		add("WAF takes no limit below %d", minRuleLimit)
	}
	if len(r.of.sum) > 1 {
		add("one number holds the requests of this and %d more", len(r.of.sum)-1)
	}
	switch longest := windows[len(windows)-1]; {
	case l.Rate.Period < r.window*second:
		add("all of them may come at once")
	case l.Rate.Period > longest*second:
		add("WAF's longest window is %d s, so that a whole period admits several times as much", longest)
	}
	if r.header == "" && len(l.Level()) > 0 && !slices.Contains(l.Level(), "ip") || len(l.Level()) == 0 {
		add("each address has it for itself there")
	}
	if r.header != "" {
		add("all plans have the largest of their limits there")
	}
	return append(out, commonLosses(l)...)
}

// commonLosses lists the settings of a limit that nothing at the edge has.
func commonLosses(l *limit.Limit) (out []string) {
	if l.FixedCost > 1 {
		out = append(out, fmt.Sprintf("cost: %d is not taken from anything, but divides the number", l.FixedCost))
	}
	if l.MaxCost > 0 {
		out = append(out, "max_cost is not checked")
	}
	if l.OnError == limit.OnErrorClosed {
		out = append(out, "on_error: closed is not known: requests pass while the store is unavailable")
	}
	if l.Missing != limit.MissingPass {
		out = append(out, fmt.Sprintf("missing: %s is not known", l.Missing))
	}
	if l.Store != limit.PlacementShared {
		out = append(out, fmt.Sprintf("store: %s admits up to twice the number: the rule does too", l.Store))
	}
	return out
}

// handleBlocks warns of limits on blocks of addresses beside a rule.
func (w *waf) handleBlocks(group []*limit.Limit, r rule) {
	for _, l := range group {
		for _, c := range l.Clauses() {
			switch {
			case c.Dim != "ip" || l.Mode != limit.ModeEnforce:
			case slices.Contains(r.outside, c.Net):
				w.handle(l, "rule %s leaves out %s: more is admitted there", r.name, c.Net)
			case l.Action == limit.ActionLimit:
				w.handle(l, "rule %s admits more to %s: WAF has one limit for all addresses of a rule", r.name, c.Net)
			}
		}
	}
}

// warnRest warns of the limits that no rule has.
func (w *waf) warnRest() {
	for _, l := range w.set.Limits {
		if !w.handled[l] {
			w.warn(l, "%s", w.reason(l))
		}
	}
	warnOverrides(&w.template, w.all, "WAF does not know tenants")
}

// maxNamed bounds the tenants named in a warning, and the limits named in a comment.
const maxNamed = 10

// warnOverrides warns once of all tenants with limits of their own.
func warnOverrides(t *template, all []*limit.Limit, why string) {
	tenants := overridden(all)
	if len(tenants) == 0 {
		return
	}
	i := slices.IndexFunc(all, func(l *limit.Limit) bool { return l.Tenant != "" })
	text := fmt.Sprintf("overrides of tenants are not said: %s: %s", why, strings.Join(tenants[:min(maxNamed, len(tenants))], ", "))
	if more := len(tenants) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	t.warnings = append(t.warnings, Warning{all[i].Line, text})
}

// notRendered returns why a limit has no place in any template, or "".
func notRendered(l *limit.Limit) string {
	switch {
	case l.Mode != limit.ModeEnforce:
		return "mode: " + l.Mode.String() + " enforces nothing, so it is not rendered"
	case !l.EnforcedAlways():
		return l.DescribeMode() + " of its buckets: the edge cannot tell these apart, so it is not rendered"
	case l.Action == limit.ActionDeny:
		return "action: deny has no rate, so it is not rendered: write a rule of your own that blocks the same"
	case l.Undivided.Algorithm == bucket.AlgorithmConcurrency:
		return "it counts requests at work at the same time, and the edge those of a time: it is not rendered"
	}
	return ""
}

// reason returns why no rule has a limit.
func (w *waf) reason(l *limit.Limit) string {
	if why := notRendered(l); why != "" {
		return why
	}
	if slices.Contains(l.Level(), "tenant") {
		return w.reasonTenant(l)
	}
	for _, dim := range l.Level() {
		if dim != "ip" && dim != "op" {
			return "it counts by " + dim + ", which WAF does not know: it has no rule"
		}
	}
	for _, c := range l.Clauses() {
		if _, ok := operationOf(c); c.Dim == "op" && !ok {
			return "WAF knows methods and paths, and no other op than those like POST /path: it has no rule"
		}
		if c.Dim != "op" && c.Dim != "ip" {
			return "it has a condition on " + c.Dim + ", which WAF does not know: it has no rule"
		}
	}
	if l.Action == limit.ActionAllow {
		return "it allows requests, so that the limits that it lifts do not hold all: these may have no rule"
	}
	if slices.Contains(l.Level(), "op") {
		return "it counts each op for itself, of which an address may use any number: it has no rule"
	}
	return "it does not hold all requests of an address, alone or with others of its group: it has no rule"
}

func (w *waf) reasonTenant(l *limit.Limit) string {
	keyed := slices.ContainsFunc(w.rules, func(r rule) bool { return r.header != "" })
	switch {
	case !keyed && len(l.Level()) == 1 && w.opts.APIKeyHeader == "":
		return "it counts by tenant, which WAF does not know: it has no rule (--api-key-header NAME renders one for all plans)"
	case keyed && len(l.Level()) == 1 && len(l.Clauses()) == 0:
		return "it counts by tenant: rule api-key has the largest of all plans, which is not this one"
	}
	return "it counts by " + strings.Join(l.Level(), ", ") + ", and WAF does not know tenants: it has no rule"
}
