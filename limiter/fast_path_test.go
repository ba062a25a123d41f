package limiter_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// reported records what an observer receives, without the items.
type reported struct{ decisions []limit.Decision }

func (o *reported) Observe(_ *limit.Set, _ *limit.Request, _ int64, d *limit.Decision, _ []limit.Item) {
	o.decisions = append(o.decisions, *d)
}

func (*reported) Took(limit.Source, time.Duration, int64) {}

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
		Store: memory.New(memory.Options{}), Backstop: backstop.New(backstop.Options{Instances: func() int { return 1 }}), Observer: &s.reported, Addrs: addrs, Timeout: time.Second, RetryJitter: time.Minute,
		Random: s.waits.Float64, Now: func() time.Time { return *now }, Unlisted: func(tenant string) { s.unlisted = append(s.unlisted, tenant) },
	}, set)
	return s
}

// rules are limits of all kinds; %d are drawn.
var rules = []string{
	"{id: l0, group: a, by: [tenant], rate: %d/2s, burst: %d}",
	"{id: l1, group: b, by: [tenant, op], rate: %d/2s, algorithm: sliding_window, max_cost: %d}",
	"{id: l2, group: c, by: [tenant], rate: %d/2s, algorithm: fixed_window, cost: %d}",
	"{id: l3, group: d, by: [tenant, ip], rate: %d/1s, burst: %d}",
	"{id: l4, group: e, by: [tenant], rate: %d00/day, timezone: Europe/Berlin, algorithm: fixed_window, max_cost: %d}",
	"{id: l5, group: f, by: [tenant, op], when: {op: GET*}, rate: %d/3s, burst: %d}",
	"{id: l6, group: f, by: [tenant, op], rate: %d/3s, burst: %d}",
	"{id: l7, group: h, by: [tenant, user], missing: share, rate: %d/2s, burst: %d}",
	"{id: l8, group: i, by: [tenant, user], missing: deny, rate: %d/2s, burst: %d}",
	"{id: l9, group: j, by: [tenant], rate: %d/2s, burst: %d, mode: shadow}",
	"{id: l10, group: k, by: [tenant], rate: %d/2s, burst: %d, store: local}",
	"{id: l11, group: l, by: [tenant], slots: %d%d, algorithm: concurrency}",
	"{id: l12, group: m, by: [tenant], rate: %d0/2s, burst: 10%d, lease: {size: 2}}",
}

// drawLimits draws limits: those of most sets take the fast path.
func drawLimits(t *testing.T, random *rand.Rand) *limit.Set {
	t.Helper()
	text := "version: 1\ndefault_plan: p\nplans:\n  p:\n"
	n := 7
	if random.IntN(4) == 0 {
		n = len(rules)
	}
	for _, i := range random.Perm(n)[:1+random.IntN(4)] {
		text += "    - " + fmt.Sprintf(rules[i], 9+random.IntN(30), 1+random.IntN(9)) + "\n"
	}
	if random.IntN(3) == 0 {
		text += "    - {id: banned, group: z, by: [tenant], rate: 1000/s}\ntenants:\n  b: {plan: p, overrides: {banned: {action: deny}}}\n"
	}
	if random.IntN(3) == 0 {
		text += fmt.Sprintf("shared:\n  - {id: ip, by: [ip], rate: %d/1s}\n", 1+random.IntN(30))
	}
	set, _, err := config.ParseLimits("limits.yaml", []byte(text), limit.CompileOptions{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return set
}

func drawRequest(random *rand.Rand) limit.Request {
	req := limit.Request{Tenant: []string{"a", "b", "c{d}", "c%7Bd%7D", "a-name-that-is-too-long-for-a-slot-of-the-store"}[random.IntN(5)], Cost: 1 + random.Int64N(4)}
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
	const requests = 20_000
	random := rand.New(rand.NewPCG(storetest.Seed(t), 3))
	now, set := start, drawLimits(t, random)
	plain, fast := newSide(t, &now, set), newSide(t, &now, set)
	limiter.ShareTurns(plain.Limiter, fast.Limiter)
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
	if !s.HasFastPath() {
		t.Fatal("no fast path")
	}
	s.BeginFast(&s.path)
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
