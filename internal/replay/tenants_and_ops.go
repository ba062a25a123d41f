package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// maxSpellings bounds the pairs of limits and ops that otherOps compares, those of the most requests first: a tenth of a second.
const maxSpellings = 100_000

// seen has the ops and the tenants of a log that warnings name.
type seen struct {
	ops    map[string]int64 // the requests of each op, of mostOps at most
	listed bool             // a tenant of the file occurs
	tenant string           // the first that the file does not list
}

// add remembers the op and the tenant of a request.
func (s *seen) add(set *limit.Set, req *limit.Request) {
	if s.ops == nil {
		s.ops = map[string]int64{}
	}
	switch _, known := s.ops[req.Op]; {
	case known:
		s.ops[req.Op]++
	case len(s.ops) < mostOps:
		s.ops[strings.Clone(req.Op)] = 1 // of a line that goes
	}
	switch {
	case s.listed:
	case set.Lists(req.Tenant):
		s.listed = true
	case s.tenant == "" && req.Tenant != noWord:
		s.tenant = strings.Clone(req.Tenant)
	}
}

// noTenant returns a warning if all requests are of one tenant though limits count by it, or if the file lists tenants and none
// of them occurs.
func (s *seen) noTenant(set *limit.Set, opts *Options, lacking *lacking) []string {
	tenant := opts.Tenant.String()
	switch {
	case set.Tenants() == 0 && tenant == DefaultTenant && set.Plans() > 0:
		return oneTenant("limits of plans count by tenant", lacking)
	case set.Tenants() == 0 || s.listed || s.tenant == "":
		return nil
	case tenant == DefaultTenant:
		return oneTenant("no listed tenant occurs", lacking)
	}
	plan := "the default plan"
	if set.Plan(s.tenant) == "" {
		plan = "no plan, as there is no default one"
	}
	such := ""
	if listed, _ := set.Example(s.tenant, ""); set.Lists(listed) {
		such = ", such as " + limit.Quote(listed) + ","
	}
	return []string{fmt.Sprintf("no tenant that the file lists%s occurs, and all requests have %s: --tenant %s makes tenants such as %s", such, plan, tenant, limit.Quote(s.tenant))}
}

// oneTenant returns the warning that all requests are of one tenant.
func oneTenant(and string, lacking *lacking) []string {
	return []string{fmt.Sprintf("every request is of the tenant %s, and %s: --tenant TEMPLATE says what of a line is the tenant, such as %s", DefaultTenant, and, lacking.tenantFields())}
}

// otherOps returns a warning for each limit without a request whose condition on the op is another spelling of an op of the log, and one
// for the others of the plans that occur whose condition holds for none.
func (s *seen) otherOps(set *limit.Set, plans map[string]bool, limits []LimitReport) (warnings []string) {
	byCount := slices.SortedFunc(maps.Keys(s.ops), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.ops[b], s.ops[a]), cmp.Compare(a, b))
	})
	compared := 0
	var unheld []string
	for _, l := range set.All() {
		use := l.OpUse()
		if use.Pattern == "" || limits[l.Ordinal].Requests > 0 {
			continue
		}
		named, held := false, false
		for _, op := range byCount {
			if compared++; compared > maxSpellings {
				break
			}
			held = held || use.Holds(op)
			if of, found := limit.SpellingOf(op, []limit.OpUse{use}); found && of.Condition != "" {
				warnings = append(warnings, fmt.Sprintf("no request met limit %s: its condition on op, %s, does not hold for the op %s of the log (%s): %s", l.ID, use.Pattern, limit.Quote(op), counted(s.ops[op], "request"), of.Reason))
				named = true
				break
			}
		}
		if occurs := l.Plan == "" || plans[l.Plan]; occurs && !named && !held && compared <= maxSpellings && l.Action == limit.ActionLimit && !l.HoldsSlots() {
			unheld = append(unheld, fmt.Sprintf("%s (%s)", l.ID, use.Pattern))
		}
	}
	return append(slices.Compact(warnings), s.noOp(slices.Compact(unheld), byCount)...)
}

// noOp returns the warning that the log has no op for limits, with the op of its most requests, or none if there are no such limits or
// more ops than are remembered.
func (s *seen) noOp(limits, byCount []string) []string {
	const named = 3
	if len(limits) == 0 || len(byCount) == 0 || len(byCount) == mostOps {
		return nil
	}
	more := ""
	if n := len(limits) - named; n > 0 {
		limits, more = limits[:named], fmt.Sprintf(" and %d more", n)
	}
	return []string{fmt.Sprintf("no op of the log meets the conditions of %s%s, so that no request met them: the op of the most requests is %s (%s)",
		strings.Join(limits, ", "), more, limit.Quote(byCount[0]), counted(s.ops[byCount[0]], "request"))}
}
