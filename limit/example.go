package limit

import "regexp"

// mostSearched is how many listed tenants Example searches at most.
const mostSearched = 10_000

// unquotedName matches names that a command line takes as they are, and quotedOp ops that it takes in quotes.
var (
	unquotedName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:@-]*$`)
	quotedOp     = regexp.MustCompile(`^[A-Za-z0-9_./:@ {}-]+$`)
)

// Example returns a tenant and an op of requests that the limits are made for: the given ones where the limits
// have these, or list no others.
func (s *Set) Example(tenant, op string) (exampleTenant, exampleOp string) {
	if n := s.Tenants(); n > 0 && n <= mostSearched && !s.Lists(tenant) {
		tenant = s.firstTenant(tenant)
	}
	return tenant, s.opOf(tenant, op)
}

// firstTenant returns the first listed tenant in the order of names, or the given one.
func (s *Set) firstTenant(other string) string {
	first := ""
	for tenant := range s.tenants.all() {
		if unquotedName.MatchString(tenant) && (first == "" || tenant < first) {
			first = tenant
		}
	}
	if first == "" {
		return other
	}
	return first
}

// opOf returns the op of the first limit of a tenant that has one in a condition, or the given op if that meets
// a limit's condition, or no limit has one.
func (s *Set) opOf(tenant, op string) string {
	first := ""
	for _, l := range s.TenantLimits(tenant) {
		if l.Action != ActionLimit || l.Mode == ModeOff || l.slots {
			continue
		}
		for i := range l.when {
			w := &l.when[i]
			if w.kind != propertyOp {
				continue
			}
			if w.holds(&Request{Op: op}) {
				return op
			}
			if first == "" && quotedOp.MatchString(w.prefix) {
				first = w.prefix
			}
		}
	}
	if first == "" {
		return op
	}
	return first
}
