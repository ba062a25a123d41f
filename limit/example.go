package limit

import (
	"net/netip"
	"regexp"
	"slices"
)

// mostSearched is how many listed tenants Example searches at most.
const mostSearched = 10_000

// unquotedName matches names that a command line takes as they are, and quotedOp ops that it takes in quotes.
var (
	unquotedName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:@-]*$`)
	quotedOp     = regexp.MustCompile(`^[A-Za-z0-9_./:@ {}-]+$`)
)

// exampleAddr is the address of a client, of those for documentation: RFC 5737.
var exampleAddr = netip.AddrFrom4([4]byte{203, 0, 113, 7})

// mostTried is how many tenants Example tries at most.
const mostTried = 10

// Example returns a tenant and an op for a first request: the given tenant unless others are listed and it is not, and
// the given op unless only other ops have limits. It leaves out those that the limits refuse, if it can.
func (s *Set) Example(tenant, op string) (exampleTenant, exampleOp string) {
	tenants := []string{tenant}
	if n := s.Tenants(); n > 0 && n <= mostSearched && !s.Lists(tenant) {
		tenants = append(s.plainTenants(), tenant)
	}
	for _, t := range tenants[:min(len(tenants), mostTried)] {
		for _, o := range s.opsOf(t, op) {
			if !s.refuses(t, o) {
				return t, o
			}
		}
	}
	return tenants[0], s.opsOf(tenants[0], op)[0]
}

// plainTenants returns the listed tenants whose names need no quotes, in their order.
func (s *Set) plainTenants() []string {
	var names []string
	for tenant := range s.tenants.all() {
		if unquotedName.MatchString(tenant) {
			names = append(names, tenant)
		}
	}
	slices.Sort(names)
	return names
}

// opsOf returns the ops that limits of a tenant have in conditions, and the given op in front if it meets one of
// these, or else behind them.
func (s *Set) opsOf(tenant, op string) (ops []string) {
	for _, l := range s.TenantLimits(tenant) {
		if l.Action != ActionLimit || l.Mode == ModeOff || l.slots {
			continue
		}
		for i := range l.when {
			w := &l.when[i]
			switch {
			case w.kind != propertyOp:
			case w.holds(&Request{Op: op}):
				return append([]string{op}, ops...)
			case quotedOp.MatchString(w.prefix):
				ops = append(ops, w.prefix)
			}
		}
	}
	return append(ops, op)
}

// refuses reports whether a ban, or a limit that demands a dimension, refuses all requests of a tenant and an op
// without dimensions.
func (s *Set) refuses(tenant, op string) bool {
	req := Request{Tenant: tenant, Op: op, Addr: exampleAddr, Cost: 1}
	return slices.ContainsFunc(s.Explain(&req), func(c Considered) bool {
		l := c.Limit
		return c.Applies && l.Mode == ModeEnforce && (l.Action == ActionDeny || l.Missing == MissingDeny && l.missing(&req) != nil)
	})
}
