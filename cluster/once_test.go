package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/memory"
)

type taker interface {
	Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call)
}

// takeAt makes a store decide a request at a given time.
func takeAt(s taker, set *limit.Set, req limit.Request, now int64) []limit.Item {
	var b limit.Buffer
	set.Resolve(&req, testAddrs, now, &b)
	s.Take(limit.DecisionTime{Now: now, Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
	return b.Items
}

// TestOnceAcrossMidnight checks that a request repeated after the end of a day is charged
// once, on both stores.
func TestOnceAcrossMidnight(t *testing.T) {
	node := redistest.Start(t)
	ctx := context.Background()
	s, err := openWith(ctx, Options{Addrs: []string{node.Addr}, IOTimeout: 5 * time.Second, DialTimeout: 5 * time.Second}, onFakeClock(t))
	if err != nil {
		t.Fatal(err)
	}
	running(t, s)
	set := compile(t,
		spec{ID: "bucket", By: []string{"tenant"}, Rate: "100/h"},
		spec{ID: "day", By: []string{"tenant"}, Rate: "1000/day", Algorithm: "fixed_window"})
	mem := memory.New(memory.Options{})
	c := client(t, node.Addr)
	req := limit.Request{Tenant: "cal", Cost: 10, ID: "x"}
	before := time.Date(2036, 3, 1, 23, 59, 59, 900e6, time.UTC).UnixMicro()
	for _, now := range []int64{before, before + 200_000} {
		words := clockArgs(now)
		args := make([]any, len(words))
		for i := range words {
			args[i] = words[i]
		}
		if err := c.Do(ctx, args...).Err(); err != nil {
			t.Fatal(err)
		}
		r, m := takeAt(s, set, req, now), takeAt(mem, set, req, now)
		for i := range r {
			if r[i].Replayed != m[i].Replayed {
				t.Errorf("%s is charged again on Redis", r[i].Limit.ID)
			}
		}
	}
}

// TestResetForgetsAnswers checks that a repeated request charges reset buckets anew, and
// that the keys of records are not counted as buckets.
func TestResetForgetsAnswers(t *testing.T) {
	node := redistest.Start(t)
	s := open(t, node.Addr)
	set := compile(t, spec{ID: "bucket", By: []string{"tenant"}, Rate: "10/h"}, spec{ID: "reg", By: []string{"region"}, Rate: "10/h"})
	req := limit.Request{Tenant: "a", Cost: 5, ID: "x", Dims: []limit.Dim{{Name: "region", Value: "eu"}}}
	for _, what := range [][2]string{{"a", ""}, {"a", "bucket"}, {"", "reg"}} {
		now := time.Now().UnixMicro()
		takeAt(s, set, req, now)
		if n, err := s.Reset(t.Context(), what[0], what[1]); n != 1 || err != nil {
			t.Errorf("reset %q: %d buckets, %v", what, n, err)
		}
		for _, it := range takeAt(s, set, req, now) {
			reset := (it.Limit.ID == "reg") == (what[1] == "reg")
			if it.Remaining != 5 || it.Replayed == reset {
				t.Errorf("after the reset of %q %s returns %+v, replayed = %v", what, it.Limit.ID, it.Verdict, it.Replayed)
			}
		}
		node.CLI(t, "FLUSHALL")
	}
}

// TestRepeatOfAFullRedis checks a replay on a Redis without memory, which cannot count it.
// A request that took the last units is not denied for lack of them.
func TestRepeatOfAFullRedis(t *testing.T) {
	t.Parallel()
	set := compile(t,
		spec{ID: "units", By: []string{"tenant"}, Rate: "10/h"},
		spec{ID: "slots", By: []string{"tenant"}, Algorithm: "concurrency", Slots: "1"})
	for name, req := range map[string]limit.Request{
		"check":       {Tenant: "a", Op: "check", Cost: 10, ID: "x"},
		"reservation": {Tenant: "b", Op: "check", Cost: 10, ID: "x", Hold: limit.HoldReservation, HoldFor: time.Minute},
		"slot":        {Tenant: "c", Cost: 1, ID: "x", Hold: limit.HoldSlot, HoldFor: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := redistest.Start(t)
			s := open(t, node.Addr)
			now := time.Now().UnixMicro()
			if it := takeAt(s, set, req, now)[0]; it.Source != limit.SourceStore || !it.Allowed {
				t.Fatalf("the first answer: %+v by %s", it.Verdict, it.Source)
			}
			node.CLI(t, "CONFIG", "SET", "maxmemory", "1")
			for _, it := range takeAt(s, set, req, now) {
				if it.Source != limit.SourceNone {
					t.Errorf("a full Redis returns %+v for %s", it.Verdict, it.Limit.ID)
				}
			}
			node.CLI(t, "CONFIG", "SET", "maxmemory", "0")
			if it := takeAt(s, set, req, now)[0]; !it.Replayed || !it.Allowed {
				t.Errorf("later the answer is %+v by %s, repeated = %v", it.Verdict, it.Source, it.Replayed)
			}
		})
	}
}

// TestOnceWhileASlotMoves checks that the store decides while a slot moves. The record key
// does not exist before it is written, so Redis treats it as moved.
func TestOnceWhileASlotMoves(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0)
	for _, opts := range corners {
		t.Run(wayName(opts), func(t *testing.T) {
			s := openWithOptions(t, opts, c.Addrs()...)
			set := compile(t, spec{ID: "bucket", By: []string{"tenant"}, Rate: "1000/h"})
			tenant, slot, to := movingTenant(t, c)
			now := time.Now().UnixMicro()
			takeAt(s, set, limit.Request{Tenant: tenant, Cost: 1}, now)
			moved := false
			c.MoveSlot(t, slot, to, func() {
				if moved {
					return
				}
				moved = true // only marked as moving: no key has moved yet
				if it := takeAt(s, set, limit.Request{Tenant: tenant, Cost: 1, ID: "x"}, now)[0]; it.Source != limit.SourceStore {
					t.Errorf("a request with an id is decided by %s: %+v", it.Source, s.Stats())
				}
			})
		})
	}
}
