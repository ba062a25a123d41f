package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/limit"
)

// elements are replacements for an element of a record, in Lua.
var elements = []string{"nil", "false", "'x'", "-1", "0.5", "2^53", "2^63", "0/0", "1/0", "-1/0", "{}", "{{}}", "{{1, 2, 3, 4, 5, 6}}", "string.rep('x', 1000000)"}

// recordPlants returns replacements for a record, which must exist when they are planted.
// size is its approximate size in bytes.
func recordPlants(size int) []plant {
	plants := append([]plant{
		planted("an empty text", "SET", "KEY", ""), planted("24 NULs", "SET", "KEY", strings.Repeat("\x00", 24)),
		planted("a huge text", "SET", "KEY", strings.Repeat("x", 10<<20)), planted("nil", "SET", "KEY", "\xc0"), planted("an empty array", "SET", "KEY", "\x90"),
		planted("a deep array", "SET", "KEY", strings.Repeat("\x91", 5000)+"\xc0"), planted("a wide array", "SET", "KEY", "\xdd\xff\xff\xff\xff"),
	}, types...)
	for n := 0; n < size; n += 1 + n/24 {
		plants = append(plants, altered(fmt.Sprintf("cut to %d", n), fmt.Sprintf("return string.sub(raw, 1, %d)", n)))
	}
	for _, e := range elements {
		for i := 1; i <= 10; i++ {
			plants = append(plants, altered(fmt.Sprintf("element %d is %s", i, e), fmt.Sprintf("local t = cmsgpack.unpack(raw); t[%d] = %s; return cmsgpack.pack(t)", i, e)))
		}
		for i := 1; i <= 6; i++ {
			plants = append(plants, altered(fmt.Sprintf("bucket element %d is %s", i, e),
				fmt.Sprintf("local t = cmsgpack.unpack(raw); if t[6] and t[6][1] then t[6][1][%d] = %s end; return cmsgpack.pack(t)", i, e)))
		}
	}
	return plants
}

// altered returns a plant that replaces the value raw by the result of a Lua expression.
func altered(name, lua string) plant {
	text := "local f = function(raw) " + lua + " end; local raw = redis.call('GET', KEYS[1]); if raw then redis.call('SET', KEYS[1], f(raw), 'KEEPTTL') end"
	return plant{name, func(tb testing.TB, c *redis.Client, key string) {
		tb.Helper()
		if err := c.Eval(tb.Context(), text, []string{key}).Err(); err != nil && err != redis.Nil { //nolint:errorlint // the script replies nothing
			tb.Fatalf("plant %s: %v", name, err)
		}
	}}
}

// recordOf returns the key of the record of a request.
func (w *ward) recordOf(req limit.Request) string {
	w.t.Helper()
	if req.Hold != limit.HoldNone {
		return string(limit.Settlement{Hold: req.Hold, Tenant: req.Tenant, ID: req.ID}.Key())
	}
	var b limit.Buffer
	w.set.Resolve(&req, testAddrs, 1, &b)
	return string(b.Calls[0].RecordKey)
}

// TestPoisonedRecords plants invalid values in the place of records of requests with an ID.
func TestPoisonedRecords(t *testing.T) {
	for name, h := range map[string]limit.Hold{"answer": limit.HoldNone, "reservation": limit.HoldReservation, "slot": limit.HoldSlot} {
		t.Run(name, func(t *testing.T) {
			w := newWard(t)
			plants := recordPlants(200)
			for n, p := range plants {
				w.now = p.name
				tenant := []string{"all", "own_tokens"}[n%2] // the tenant of all limits, and that of one
				w.empty(tenant)
				req := w.id(victim(tenant), h)
				w.decide(false, req)
				key := w.recordOf(req)
				if n := w.client.Exists(t.Context(), key).Val(); n != 1 {
					t.Fatalf("there is no record %s", key)
				}
				p.put(t, w.client, key)
				w.again(req, n)
				w.healthy()
				if len(w.harmful) > mostPoisoned {
					t.Fatalf("after %d plants", n+1)
				}
			}
			if lines := w.lines.n.Load(); lines > int64(len(plants)) {
				t.Errorf("%d plants made %d lines of log", len(plants), lines)
			}
			t.Logf("%d plants", len(plants))
		})
	}
}

// again repeats a request with a poisoned record, and settles it. Other requests with IDs
// are in the same calls of the script.
func (w *ward) again(req limit.Request, n int) {
	w.t.Helper()
	none := limit.HoldNone
	too := req
	too.Cost = 100_000 // denied by some limits, and granted by others
	w.decide(n%3 == 0, w.id(bystander(0), none), w.id(bystander(1), req.Hold), req, w.id(bystander(2), req.Hold), w.id(bystander(3), none), too, bystander(0))
	changes := []limit.Change{limit.ChangeCommit, limit.ChangeCancel}
	if req.Hold == limit.HoldSlot {
		changes = []limit.Change{limit.ChangeRenew, limit.ChangeRelease}
	}
	for _, change := range changes {
		if req.Hold != limit.HoldNone {
			what := &limit.Settlement{Hold: req.Hold, Change: change, Tenant: req.Tenant, ID: req.ID, Units: int64(n % 3)}
			w.do(change.String(), func() { w.limiter.Settle(what, true) })
		}
	}
	w.decide(false, bystander(0), w.id(bystander(1), none))
}

// TestPoisonedMarks plants invalid values under the keys that proxies use to coordinate:
// decisions do not need them.
func TestPoisonedMarks(t *testing.T) {
	w := newWard(t)
	h := w.store.NewHeartbeat()
	talk := func(ctx context.Context, n int64) (problems int) {
		secret := []byte(strings.Repeat("s", 32))
		for what, f := range map[string]func() error{
			"a heartbeat":   func() error { _, err := h.Beat(ctx); return err },
			"the secret":    func() error { _, err := w.store.agree(ctx, w.store.top.Load(), secret); return err },
			"what to admit": func() error { return w.store.AddAdmitted(ctx, n, map[string]float64{"a": 1}) },
			"who admitted":  func() error { _, _, err := w.store.Admitted(ctx, n, 5); return err },
		} {
			w.do(what, func() {
				if f() != nil {
					problems++
				}
			})
		}
		return problems
	}
	w.now = "healthy"
	if n := talk(t.Context(), 1); n != 0 {
		t.Fatalf("%d problems while all is well", n)
	}
	var keys []string
	for _, key := range w.client.Keys(t.Context(), "lg:*").Val() {
		if !strings.HasPrefix(key, "lg:t:") && !strings.HasPrefix(key, "lg:s:") {
			keys = append(keys, key)
		}
	}
	if len(keys) < 4 {
		t.Fatalf("the store has only %q", keys)
	}
	plants := append([]plant{
		planted("an empty text", "SET", "KEY", ""), planted("24 NULs", "SET", "KEY", strings.Repeat("\x00", 24)), planted("a huge text", "SET", "KEY", strings.Repeat("x", 10<<20)),
		planted("a large number", "SET", "KEY", "1e308"), planted("a negative number", "SET", "KEY", "-9223372036854775808"),
		planted("odd fields", "HSET", "KEY", "swept", "nan", "a", "inf", "b", "-1", "c", "", "d", strings.Repeat("9", 400)),
	}, types...)
	for _, key := range keys {
		for _, p := range plants {
			w.now = key + " is " + p.name
			p.put(t, w.client, key)
			talk(t.Context(), 1)
			w.decide(false, bystander(0), w.id(bystander(1), limit.HoldNone), bystander(2))
			w.healthy()
		}
		w.client.Del(t.Context(), key)
	}
	w.now = "mended"
	if n := talk(t.Context(), 2); n != 0 {
		t.Errorf("%d problems after all was mended", n)
	}
	t.Logf("%d plants in %q", len(plants)*len(keys), keys)
}
