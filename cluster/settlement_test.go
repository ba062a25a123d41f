package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/memory"
)

func TestHoldDifferential(t *testing.T) { compareHolds(t, 5000) }

// compareHolds drives random histories of reservations and slots through the scripts and
// through the memory store, on one injected clock. The answers must be equal to the unit
// and the millisecond, through settlements in time and too late, overdrafts and renewals.
func compareHolds(t *testing.T, steps int) {
	t.Helper()
	node := redistest.Start(t)
	s, err := openWith(t.Context(), Options{Addrs: []string{node.Addr}, IOTimeout: 5 * time.Second, DialTimeout: 5 * time.Second}, onFakeClock(t))
	if err != nil {
		t.Fatal(err)
	}
	running(t, s)
	h := &holdHistory{t: t, store: s, client: client(t, node.Addr), random: rand.New(rand.NewPCG(storetest.Seed(t), 7))}
	for h.steps < steps && !t.Failed() {
		h.run()
	}
	t.Logf("%d steps compared; outcomes of %d settlements: %v; %d decisions, %d of them repeated, %d denied", h.steps, h.settled, h.outcomes, h.decisions, h.repeated, h.denied)
}

type holdHistory struct {
	t      *testing.T
	store  *Store
	client *redis.Client
	random *rand.Rand

	mem    *memory.Store
	now    int64
	tenant string

	steps, settled, decisions, repeated, denied int
	outcomes                                    [3]int
}

// run compares one history, of a tenant of its own.
func (h *holdHistory) run() {
	h.mem = memory.New(memory.Options{})
	h.tenant = fmt.Sprint("hold-", h.steps)
	h.now = 2_208_988_800e6 + h.random.Int64N(1e12) // 2040: nothing expires while the test runs
	set := h.limits()
	for range 60 {
		h.steps++
		h.now += []int64{0, 0, 1, 1000, 1e6, 30e6, 70e6, 4000e6}[h.random.IntN(8)]
		words := clockArgs(h.now)
		args := make([]any, len(words))
		for i := range words {
			args[i] = words[i]
		}
		if err := h.client.Do(context.Background(), args...).Err(); err != nil {
			h.t.Fatal(err)
		}
		if h.random.IntN(2) == 0 {
			h.decide(set)
		} else {
			h.settle()
		}
	}
}

// limits draws a plan of limits of fixed ids and algorithms.
func (h *holdHistory) limits() *limit.Set {
	n := func(most int) string { return fmt.Sprint(most/3 + h.random.IntN(most)) }
	period := []string{"s", "m", "h"}[h.random.IntN(3)]
	return compile(h.t,
		spec{ID: "bucket", By: []string{"tenant"}, Rate: n(90) + "/" + period, Burst: n(150)},
		spec{ID: "own", By: []string{"tenant", "op"}, Rate: n(90) + "/" + period, Burst: n(150)},
		spec{ID: "sliding", By: []string{"tenant"}, Rate: n(150) + "/" + period, Algorithm: "sliding_window"},
		spec{ID: "fixed", By: []string{"tenant", "op"}, Rate: n(150) + "/" + period, Algorithm: "fixed_window"},
		spec{ID: "day", By: []string{"tenant"}, Rate: n(3000) + "/day", Algorithm: "fixed_window", Zone: "Europe/Berlin"},
		spec{ID: "log", By: []string{"tenant"}, Rate: n(150) + "/" + period, Algorithm: "sliding_log"},
		spec{ID: "calls", By: []string{"tenant"}, Rate: n(90) + "/" + period, Cost: "1"},
		spec{ID: "watch", By: []string{"tenant"}, Rate: n(10) + "/" + period, Mode: "shadow"},
		spec{ID: "slots", By: []string{"tenant"}, Algorithm: "concurrency", Slots: n(5)},
	)
}

func (h *holdHistory) id() string { return fmt.Sprint("id", h.random.IntN(4)) }

// hold draws a kind of hold for an id.
func (h *holdHistory) hold() limit.Hold {
	return []limit.Hold{limit.HoldReservation, limit.HoldSlot}[h.random.IntN(2)]
}

func (h *holdHistory) decide(set *limit.Set) {
	req := limit.Request{Tenant: h.tenant, Op: "op", Cost: 1 + h.random.Int64N(8)}
	if h.random.IntN(4) > 0 {
		req.Hold, req.ID, req.HoldFor = h.hold(), h.id(), time.Minute+time.Duration(h.random.IntN(3_540_000))*time.Millisecond
		if req.Hold == limit.HoldSlot {
			req.Cost = 1
		}
	}
	got, want := takeAt(h.store, set, req, h.now), takeAt(h.mem, set, req, h.now)
	h.decisions++
	if want[0].Replayed {
		h.repeated++
	}
	for i := range got {
		if !want[i].Allowed {
			h.denied++
		}
		if got[i].Verdict != want[i].Verdict || got[i].Replayed != want[i].Replayed || got[i].Recorded != want[i].Recorded {
			h.t.Fatalf("step %d, %+v: %s\nRedis  %+v\nmemory %+v", h.steps, req, got[i].Limit.ID, got[i], want[i])
		}
	}
}

func (h *holdHistory) settle() {
	what := limit.Settlement{Hold: h.hold(), Tenant: h.tenant, ID: h.id()}
	if what.Hold == limit.HoldSlot {
		what.Change = []limit.Change{limit.ChangeRelease, limit.ChangeRenew}[h.random.IntN(2)]
		what.For = time.Duration(h.random.IntN(2)) * (time.Minute + time.Duration(h.random.IntN(1e6))*time.Millisecond)
	} else {
		what.Change = []limit.Change{limit.ChangeCommit, limit.ChangeCommit, limit.ChangeCancel}[h.random.IntN(3)]
		what.Units = []int64{0, h.random.Int64N(10), h.random.Int64N(200)}[h.random.IntN(3)]
	}
	at := limit.DecisionTime{Now: h.now, Start: time.Now(), Timeout: 5 * time.Second}
	got, gotBack := h.store.Settle(at, &what)
	want, wantBack := h.mem.Settle(at, &what)
	h.settled++
	h.outcomes[want]++
	if got != want {
		h.t.Fatalf("step %d, %+v: %d on Redis, %d in memory", h.steps, what, got, want)
	}
	// A full bucket may already be gone in memory, and then takes nothing back.
	if !slices.Equal(gotBack, wantBack) && len(gotBack) < len(wantBack) {
		h.t.Fatalf("step %d, %+v: units came back to %q on Redis, to %q in memory", h.steps, what, gotBack, wantBack)
	}
}
