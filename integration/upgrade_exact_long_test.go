//go:build long

package integration

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// testExact checks that each unit is admitted once, whichever release is asked: first in
// turn, then by many clients until all are denied.
func (u *upgrade) testExact(t *testing.T) {
	const inTurn = 200
	for _, op := range u.ops {
		tenant := "exact-" + op
		for i := range int64(inTurn) {
			r := u.ways()[i%2][0]
			if v := r.decide(t, tenantWords("RL.CHECK", tenant, op, 1)...); !v.allowed || v.id != op || v.left != upgradeUnits-1-i {
				t.Fatalf("%s: check %d, by the %s release: %+v", op, i, r.name, v)
			}
		}
		admitted := untilDenied(t, u.clients(t, 8), func(c *redis.Client) (bool, error) {
			v, err := asVerdict(c.Do(t.Context(), tenantWords("RL.CHECK", tenant, op, 1)...))
			if err == nil && v.source != "store" && (v.source != "cache" || v.allowed) {
				err = fmt.Errorf("decided by %s", v.source)
			}
			return v.allowed, err
		})
		if inTurn+admitted != upgradeUnits {
			t.Errorf("%s: admitted %d, want exactly %d", op, inTurn+admitted, upgradeUnits)
		}
		for _, r := range []release{u.old, u.next} {
			if v := r.decide(t, tenantWords("RL.PEEK", tenant, "other", 1)...); v.left != roomyUnits-upgradeUnits-1 {
				t.Errorf("%s: %s release: %d left of roomy", op, r.name, v.left)
			}
		}
	}
}

// untilDenied calls ask with each client in two goroutines, until it has been denied
// three times in each, and returns how many were admitted.
func untilDenied(t *testing.T, clients []*redis.Client, ask func(*redis.Client) (allowed bool, err error)) int {
	t.Helper()
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for i := range 2 * len(clients) {
		wg.Go(func() {
			for denials := 0; denials < 3; {
				allowed, err := ask(clients[i%len(clients)])
				switch {
				case err != nil:
					t.Error(err)
					return
				case allowed:
					admitted.Add(1)
				default:
					denials++
				}
			}
		})
	}
	wg.Wait()
	return int(admitted.Load())
}

// testDialects does the same with limits that come with the call.
func (u *upgrade) testDialects(t *testing.T) {
	dialects := []struct {
		words   []any
		allowed int64 // the first element of a reply that admits
	}{
		{[]any{"CL.THROTTLE", "upgrade-cl", upgradeUnits - 1, 1, 86400, 1}, 0},
		{[]any{"GCRA", "upgrade-gcra", upgradeUnits - 1, 1, 86400}, 0},
		{[]any{"THROTTLE", "upgrade-throttle", upgradeUnits, 1, 86400, 1}, 1},
	}
	for _, d := range dialects {
		if !u.has(t, fmt.Sprint(d.words[0])) {
			continue
		}
		ask := func(c *redis.Client) (bool, error) {
			f, err := c.Do(t.Context(), d.words...).Slice()
			if err != nil || len(f) != 5 {
				return false, fmt.Errorf("%v: %v, %w", d.words, f, err)
			}
			return f[0] == d.allowed, nil
		}
		const inTurn = 100
		for i := range inTurn {
			if ok, err := ask(u.ways()[i%2][0].c); !ok || err != nil {
				t.Fatalf("%v: call %d: %v, %v", d.words, i, ok, err)
			}
		}
		if n := inTurn + untilDenied(t, u.clients(t, 8), ask); n != upgradeUnits {
			t.Errorf("%v: admitted %d, want exactly %d", d.words, n, upgradeUnits)
		}
	}
}

// testIDs checks that a request with an ID takes its units once, whichever release
// receives it again.
func (u *upgrade) testIDs(t *testing.T) {
	const cost, second = 3, 5
	for _, op := range u.ops {
		if op == "address" || op == "levels" {
			continue // a shared limit charges a repetition
		}
		for i, way := range u.ways() {
			tenant := fmt.Sprintf("ids-%s-%d", op, i)
			again := tenantWords("RL.CHECK", tenant, op, cost, "ID", "first")
			want := way[0].decide(t, again...)
			if !want.allowed || want.left != upgradeUnits-cost {
				t.Errorf("%s: by the %s release: %+v", op, way[0].name, want)
			}
			for range 2 {
				if v := way[1].decide(t, again...); v != want {
					t.Errorf("%s: repeated at the %s release: %+v, was %+v", op, way[1].name, v, want)
				}
			}
			// Another cost is another request.
			if v := way[1].decide(t, tenantWords("RL.CHECK", tenant, op, second, "ID", "first")...); v.left != upgradeUnits-cost-second {
				t.Errorf("%s: with another cost at the %s release: %+v", op, way[1].name, v)
			}
			u.left(t, tenant, op, upgradeUnits-cost-second)
		}
		u.askAtOnce(t, op)
	}
}

// askAtOnce sends one request with an ID to both releases at once, many times.
func (u *upgrade) askAtOnce(t *testing.T, op string) {
	t.Helper()
	const rounds, cost = 10, 2
	tenant := "at-once-" + op
	clients := u.clients(t, 4)
	for round := range rounds {
		var wg sync.WaitGroup
		for _, c := range clients {
			wg.Go(func() {
				v, err := asVerdict(c.Do(t.Context(), tenantWords("RL.CHECK", tenant, op, cost, "ID", round)...))
				if err != nil || !v.allowed || v.source != "store" || v.left != int64(upgradeUnits-cost*(round+1)) {
					t.Errorf("%s, round %d: %+v, %v", op, round, v, err)
				}
			})
		}
		wg.Wait()
	}
	u.left(t, tenant, op, upgradeUnits-rounds*cost)
}
