package edge

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"

	"github.com/limitgate/limitgate/limit"
)

// Bounds of WAF.
const (
	maxRateRules = 10            // of a web ACL, rate-based
	minRuleLimit = 10            // requests in a window
	maxRuleLimit = 2_000_000_000 // requests in a window
	includedWCU  = 1500          // of a web ACL, without a surcharge
	maxAddresses = 10_000        // of an IP set
	maxWCU       = 5000
)

// windows are the lengths of WAF's windows, in seconds.
var windows = []int64{60, 120, 300, 600}

// rule is a rate-based rule.
type rule struct {
	name   string
	of     ceiling
	window int64 // seconds
	limit  int64 // requests of one client in a window
	op     *operation
	header string // the key of a client, or "" for its address
	// without are operations, and outside blocks of addresses, that the rule leaves out.
	without []operation
	outside []netip.Prefix
	least   bool // limit is WAF's least
	// raised is the limit of a plan that admits more to an address than of does, or nil.
	raised *limit.Limit
}

// waf collects the rules of a web ACL.
type waf struct {
	template
	opts    Options
	set     *limit.Set
	shared  [][]*limit.Limit // the groups of limits that may apply to any tenant
	all     []*limit.Limit
	rules   []rule
	wcu     int
	handled map[*limit.Limit]bool // what the rules say of these has a warning
}

// webACL returns the template of a web ACL.
func webACL(set *limit.Set, opts Options) template {
	w := &waf{opts: opts, set: set, all: set.All(), handled: map[*limit.Limit]bool{}}
	w.shared = limit.Compete(slices.DeleteFunc(slices.Clone(w.all), func(l *limit.Limit) bool { return !l.SpansTenants() }))
	for _, group := range w.shared {
		if rule, ok := w.addressRule(group, nil); ok {
			w.add(rule)
		}
	}
	if opts.APIKeyHeader != "" {
		w.addKeyRule()
	}
	for _, group := range w.shared {
		for _, op := range operations(group) {
			if rule, ok := w.addressRule(group, &op); ok {
				w.add(rule)
			}
		}
	}
	w.warnWCU()
	w.warnRest()
	w.render()
	return w.template
}

// addressRule returns the rule for the requests of an address, all or those of an operation. Ok is
// false if the limits of the group do not bound them.
func (w *waf) addressRule(group []*limit.Limit, op *operation) (r rule, ok bool) {
	s := scope{op: op, anyTenant: true}
	if op == nil {
		s.except = exempt(group)
	}
	r.of, ok = ceilingOf(group, s)
	if !ok || op != nil && !slices.ContainsFunc(r.of.last.Clauses(), func(c limit.Clause) bool { return c.Dim == "op" }) {
		return r, false // the rule for all requests says as much
	}
	r.name, r.op = r.of.last.ID, op
	if !w.size(&r, r.of.last.Rate.Period, func(t int64) int64 {
		var requests int64
		requests, r.raised = w.atLeast(total(r.of.sum, t), t, op)
		return requests
	}) {
		return r, false
	}
	for _, l := range group {
		if s.except[l] && op == nil {
			exempted, _ := operationOf(l.Clauses()[0])
			r.without = append(r.without, exempted)
			w.handle(l, "rule %s leaves out %s", r.name, exempted)
		}
	}
	for _, net := range blocks(group) {
		s.net = net
		if c, ok := ceilingOf(group, s); !ok && !deniesAll(group, s) || total(c.sum, r.window*second) > total(r.of.sum, r.window*second) {
			r.outside = append(r.outside, net)
		}
	}
	w.handleBlocks(group, r)
	return r, true
}

// deniesAll reports whether all requests of a scope are denied.
func deniesAll(group []*limit.Limit, s scope) bool {
	i := slices.IndexFunc(group, func(l *limit.Limit) bool {
		return l.Mode == limit.ModeEnforce && !s.except[l] && s.part(l) != none
	})
	return i >= 0 && group[i].Action == limit.ActionDeny && s.part(group[i]) == all
}

// atLeast returns the larger of what shared limits admit to an address and what any limit of a plan
// admits to it, with that limit: no rule for all requests is stricter than one of these.
func (w *waf) atLeast(requests, t int64, op *operation) (int64, *limit.Limit) {
	var of *limit.Limit
	for _, l := range w.all {
		counts := op == nil && l.Mode == limit.ModeEnforce && l.Action == limit.ActionLimit && slices.Equal(l.Level(), []string{"tenant", "ip"})
		if counts && most(l, t) > requests {
			requests, of = most(l, t), l
		}
	}
	return requests, of
}

// size sets the window and the limit of a rule: the window nearest to a period in which WAF takes the
// limit. It reports false, with a warning, if there is none.
func (w *waf) size(r *rule, period int64, most func(t int64) int64) bool {
	near := slices.Clone(windows)
	slices.SortStableFunc(near, func(a, b int64) int { return cmp.Compare(distance(a*second, period), distance(b*second, period)) })
	largest := 0.0
	for _, window := range near {
		limit := math.Ceil(w.opts.Margin * float64(most(window*second)))
		largest = max(largest, limit)
		if limit >= minRuleLimit && limit <= maxRuleLimit {
			r.window, r.limit = window, int64(limit)
			return true
		}
	}
	if largest < minRuleLimit { // a larger limit admits no less
		r.window, r.limit, r.least = near[0], minRuleLimit, true
		return true
	}
	for _, l := range r.of.sum {
		w.handle(l, "it has no rule: %.0f requests in a window are above WAF's maximum of %d", largest, maxRuleLimit)
	}
	return false
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// add adds a rule, unless the web ACL is full.
func (w *waf) add(r rule) {
	base := r.name
	for n := 2; slices.ContainsFunc(w.rules, func(other rule) bool { return ruleName(other.name) == ruleName(r.name) }); n++ {
		r.name = fmt.Sprintf("%s-%d", base, n)
	}
	var why string
	switch cost := r.wcu(); {
	case len(w.rules) == maxRateRules:
		why = fmt.Sprintf("a web ACL has at most %d rate-based rules", maxRateRules)
	case slices.ContainsFunc(families(r.outside), func(f family) bool { return len(f.nets) > maxAddresses }):
		why = fmt.Sprintf("a set of WAF has at most %d addresses", maxAddresses)
	case w.wcu+cost > maxWCU:
		why = fmt.Sprintf("a web ACL has at most %d WCU", maxWCU)
	default:
		w.wcu += cost
		w.rules = append(w.rules, r)
		w.describe(r)
		return
	}
	for _, l := range r.of.sum {
		w.handle(l, "rule %s is left out: %s", r.name, why)
	}
}

func (w *waf) warnWCU() {
	if w.wcu > includedWCU {
		w.warnings = append(w.warnings, Warning{1, fmt.Sprintf("the rules take %d WCU: above %d AWS charges more for each request", w.wcu, includedWCU)})
	}
}

// handle warns of a limit of which the template says a part.
func (w *waf) handle(l *limit.Limit, format string, args ...any) {
	w.handled[l] = true
	w.warn(l, format, args...)
}
