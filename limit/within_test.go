package limit

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawConditions draws at most one condition for each of op, ip and user.
func drawConditions(rt *rapid.T, label string) *Limit {
	l := &Limit{ID: label}
	for dim, patterns := range map[string][]string{
		"op": {"GET /a", "GET /a*", "GET /*", "GET /ab", "P*"}, "ip": {"203.0.113.7", "203.0.113.0/24", "203.0.0.0/16", "198.51.100.0/24"}, "user": {"u1", "u*", "v"},
	} {
		if !rapid.Bool().Draw(rt, label+" has "+dim) {
			continue
		}
		c, err := parseCondition(dim, rapid.SampledFrom(patterns).Draw(rt, label+" "+dim))
		if err != nil {
			rt.Fatal(err)
		}
		l.when = append(l.when, c)
	}
	return l
}

// TestWithin: a limit is within another one only if each request that matches it matches the other one. Otherwise,
// where both can match, a limit with the narrower conditions of both, which the advice about action: allow is to
// write, takes the place of it.
func TestWithin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := drawConditions(rt, "a"), drawConditions(rt, "b")
		if !b.within(a) {
			if both := bothOf(a, b); canMeet(a, b) && compareRank(both, b) >= 0 {
				rt.Fatalf("%v is not more specific than %v", both.When(), b.When())
			}
			return
		}
		for _, op := range []string{"GET /a", "GET /ab", "GET /b", "POST /"} {
			for _, addr := range []string{"203.0.113.7", "203.0.113.8", "203.0.1.1", "198.51.100.1"} {
				for _, user := range []string{"u1", "u2", "v"} {
					req := &Request{Op: op, Addr: netip.MustParseAddr(addr), Dims: []Dim{{"user", user}}}
					if b.matches(req) && !a.matches(req) {
						rt.Fatalf("%v matches %s %s %s, and %v does not", b.When(), op, addr, user, a.When())
					}
				}
			}
		}
	})
}

// bothOf returns a limit with the narrower condition of each dimension.
func bothOf(a, b *Limit) *Limit {
	both := &Limit{when: slices.Clone(b.when)}
	for _, c := range a.when {
		i := slices.IndexFunc(both.when, func(of condition) bool { return of.name == c.name })
		switch {
		case i < 0:
			both.when = append(both.when, c)
		case c.within(&both.when[i]):
			both.when[i] = c
		}
	}
	return both
}
