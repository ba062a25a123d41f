package limiter_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// reported records what an observer receives, without the items.
type reported struct{ decisions []limit.Decision }

func (o *reported) Observe(_ *limit.Set, d *limit.Decision, _ []limit.Item) {
	o.decisions = append(o.decisions, *d)
}

func (*reported) Settled(limit.Change, limit.Outcome) {}

// side is a limiter with a store of its own, for a comparison of both paths.
type side struct {
	*limiter.Limiter
	reported
	unlisted []string
	waits    *rand.Rand
	path     limiter.FastPath
}

func newSide(t *testing.T, now *time.Time, set *limit.Set) *side {
	t.Helper()
	s := &side{waits: rand.New(rand.NewPCG(1, 2))}
	addrs, err := limit.NewAddrHasher([]byte("a secret for tests only"), limit.Prefixes{})
	if err != nil {
		t.Fatal(err)
	}
	s.Limiter = limiter.New(limiter.Options{
		Store: memory.New(memory.Options{}), Observer: &s.reported, Addrs: addrs, Timeout: time.Second, RetryJitter: time.Minute,
		Random: s.waits.Float64, Now: func() time.Time { return *now }, Unlisted: func(tenant string) { s.unlisted = append(s.unlisted, tenant) },
	}, set)
	return s
}

// drawLimits draws limits of all kinds: most of them take the fast path.
func drawLimits(t *testing.T, random *rand.Rand) *limit.Set {
	t.Helper()
	levels := [][]string{{"tenant"}, {"tenant", "op"}, {"tenant", "user"}, {"tenant", "ip"}, {"ip"}, {"tenant"}}
	algorithms := []string{"token_bucket", "token_bucket", "sliding_window", "fixed_window"}
	var specs []storetest.Spec
	for i, by := range levels[:1+random.IntN(len(levels))] {
		s := storetest.Spec{ID: fmt.Sprint("l", i), By: by, Rate: fmt.Sprintf("%d/%ds", 1+random.IntN(30), 1+random.IntN(4))}
		if s.Algorithm = algorithms[random.IntN(len(algorithms))]; s.Algorithm == "token_bucket" && random.IntN(2) == 0 {
			s.Burst = fmt.Sprint(1 + random.IntN(50))
		}
		if random.IntN(10) == 0 {
			s.Mode = "shadow"
		}
		specs = append(specs, s)
	}
	return storetest.Compile(t, specs...)
}

func drawRequest(random *rand.Rand) limit.Request {
	req := limit.Request{Tenant: []string{"a", "b", "c{d}", "a-name-that-is-too-long-for-a-slot-of-the-store"}[random.IntN(4)], Cost: 1 + random.Int64N(4)}
	if random.IntN(2) == 0 {
		req.Op = []string{"GET /a", "GET;b"}[random.IntN(2)]
	}
	if random.IntN(3) == 0 {
		req.Dims = []limit.Dim{{Name: "user", Value: fmt.Sprint(random.IntN(3))}}
	}
	if random.IntN(3) == 0 {
		req.Addr = netip.AddrFrom4([4]byte{192, 0, 2, byte(random.IntN(2))})
	}
	if random.IntN(20) == 0 {
		req.ID = fmt.Sprint(random.IntN(5))
	}
	return req
}

// verdicts returns the parts of items that both paths set.
func verdicts(items []limit.Item) []limit.Item {
	out := slices.Clone(items)
	for i := range out {
		out[i].State, out[i].At, out[i].Name = [6]int64{}, 0, slices.Clone(out[i].Name)
	}
	return out
}

// TestFastPath checks that the fast path makes the decisions of Start, request by request, with
// limits that change and resets: equal decisions, items, waits, and reports.
func TestFastPath(t *testing.T) {
	const requests = 50_000
	random := rand.New(rand.NewPCG(storetest.Seed(t), 3))
	now, set := start, drawLimits(t, random)
	plain, fast := newSide(t, &now, set), newSide(t, &now, set)
	taken := 0
	for n := range requests {
		switch random.IntN(300) {
		case 0:
			set = drawLimits(t, random)
			plain.SetLimits(set)
			fast.SetLimits(set)
		case 1:
			reset(t, plain.Limiter, "a")
			reset(t, fast.Limiter, "a")
		default:
			now = now.Add(time.Duration(random.IntN(80)) * time.Millisecond)
		}
		req := drawRequest(random)
		want, items := plain.decide(req)
		got, gotItems, ok := fast.decideFast(t, req)
		if ok {
			taken++
		} else {
			got, gotItems = fast.decide(req)
		}
		if got != want || !reflect.DeepEqual(gotItems, items) {
			t.Fatalf("request %d, %+v, fast path %v:\n%+v\n%+v\nwant\n%+v\n%+v", n, req, ok, got, gotItems, want, items)
		}
	}
	if !slices.Equal(fast.decisions, plain.decisions) || !slices.Equal(fast.unlisted, plain.unlisted) {
		t.Error("the observers received different decisions or tenants")
	}
	t.Logf("%d of %d requests took the fast path", taken, requests)
	if taken < requests/10 {
		t.Error("too few")
	}
}

func (s *side) decide(req limit.Request) (limit.Decision, []limit.Item) {
	b := limiter.Batch{Requests: []limit.Request{req}}
	s.Decide(&b)
	return b.Decisions[0], verdicts(b.Items(0))
}

func (s *side) decideFast(t *testing.T, req limit.Request) (d limit.Decision, items []limit.Item, ok bool) {
	t.Helper()
	if !s.BeginFast(&s.path) {
		t.Fatal("no fast path")
	}
	if !s.path.Decide(&req) {
		return d, nil, false
	}
	return s.path.Decision, verdicts(s.path.Items(&req)), true
}

// reset resets the buckets of a tenant.
func reset(t *testing.T, l *limiter.Limiter, tenant string) {
	t.Helper()
	if _, err := l.Reset(t.Context(), tenant, ""); err != nil {
		t.Fatal(err)
	}
}
