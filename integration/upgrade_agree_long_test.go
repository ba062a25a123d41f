//go:build long

package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// testReset checks that a reset at one release holds at the other one.
func (u *upgrade) testReset(t *testing.T) {
	for i, way := range u.ways() {
		tenant := fmt.Sprint("reset-", i)
		for _, op := range u.ops {
			way[0].decide(t, tenantWords("RL.CHECK", tenant, op, 7)...)
		}
		for _, op := range u.ops {
			if op != "address" && op != "levels" {
				way[1].settle(t, 1, "RL.RESET", tenant, op)
			}
		}
		way[1].settle(t, 1, "RL.RESET", tenant, "roomy")
		way[0].decide(t, tenantWords("RL.CHECK", tenant, "bucket", 7)...)
		u.left(t, tenant, "bucket", upgradeUnits-7)
		if n, ok := way[1].do(t, "RL.RESET", tenant).(int64); !ok || n < 2 {
			t.Errorf("reset of %s at the %s release: %d", tenant, way[1].name, n)
		}
		if n, ok := way[1].do(t, "RL.RESET", "-", "address").(int64); !ok || n < 1 {
			t.Errorf("reset of address at the %s release: %d", way[1].name, n)
		}
		for _, op := range u.ops {
			if op != "levels" { // its address is not reset
				u.left(t, tenant, op, upgradeUnits)
			}
		}
	}
}

// passing are the names in a reply of RL.EXPLAIN whose values depend on the time.
var passing = []string{"wait_ms", "retry_after_ms"}

// testAgree checks that both releases peek and explain alike, at fresh, used and denied
// buckets.
func (u *upgrade) testAgree(t *testing.T) {
	const mostDrift = 5000 // milliseconds between two commands
	for _, op := range u.ops {
		tenant := "agree-" + op
		for _, take := range []int{0, 25, upgradeUnits - 25} {
			if take > 0 {
				u.old.decide(t, tenantWords("RL.CHECK", tenant, op, take)...)
			}
			for _, cost := range []int{1, 30, upgradeUnits + 1} {
				words := tenantWords("RL.PEEK", tenant, op, cost)
				before, after := u.old.decide(t, words...), u.next.decide(t, words...)
				if d := before.reset - after.reset; d < 0 || d > mostDrift {
					t.Errorf("%v: full again in %d ms and %d ms", words, before.reset, after.reset)
				}
				if d := before.wait - after.wait; d < 0 || d > mostDrift {
					t.Errorf("%v: a wait of %d ms and of %d ms", words, before.wait, after.wait)
				}
				after.reset, after.wait = before.reset, before.wait
				if before != after {
					t.Errorf("%v: %+v and %+v", words, before, after)
				}
			}
			words := tenantWords("RL.EXPLAIN", tenant, op, 1)
			sameMap(t, op, u.old.do(t, words...), u.next.do(t, words...))
		}
	}
}

// sameMap checks that the reply of this release has all names of the earlier one, with
// the same values. It logs different texts for people.
func sameMap(t *testing.T, at string, before, after any) {
	t.Helper()
	old, ok1 := before.(map[any]any)
	next, ok2 := after.(map[any]any)
	if !ok1 || !ok2 {
		t.Fatalf("%s: %T and %T, want maps", at, before, after)
	}
	for _, key := range slices.SortedFunc(maps.Keys(old), func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		name, place := fmt.Sprint(key), at+" "+fmt.Sprint(key)
		got, has := next[key]
		switch {
		case !has:
			t.Errorf("%s: this release does not have it", place)
		case name == "limits":
			sameLimits(t, at, old[key], got)
		case slices.Contains(passing, name) || fmt.Sprint(old[key]) == fmt.Sprint(got):
		case name == "reason", name == "on_error" && onErrorValue(old[key]) == onErrorValue(got):
			t.Logf("%s: %q is now %q", place, old[key], got)
		default:
			t.Errorf("%s: %v is now %v", place, old[key], got)
		}
	}
}

// onErrorValue returns the part of on_error before its explanation, the value in the limits
// file.
func onErrorValue(text any) string {
	word, _, _ := strings.Cut(fmt.Sprint(text), ":")
	return word
}

// sameLimits does the same with the limits of two replies, which must be equally many.
func sameLimits(t *testing.T, at string, before, after any) {
	t.Helper()
	old, ok1 := before.([]any)
	next, ok2 := after.([]any)
	if !ok1 || !ok2 || len(old) != len(next) || len(old) == 0 {
		t.Fatalf("%s: %d limits and %d", at, len(old), len(next))
	}
	for i := range old {
		sameMap(t, fmt.Sprintf("%s, limit %d:", at, i), old[i], next[i])
	}
}
