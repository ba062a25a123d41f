package memory

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
)

// twins returns two stores that place all buckets alike.
func twins(buckets int) (a, b *Store) {
	a, b = New(Options{Buckets: buckets}), New(Options{Buckets: buckets})
	b.seed = a.seed
	for i := range b.shards {
		b.shards[i].seed = a.seed
	}
	return a, b
}

// TestTakeFast checks that TakeFast decides as Take does, or has no effect: with clocks that are
// set back, limits that change, refunds, debts, and stores that are full of live buckets.
func TestTakeFast(t *testing.T) {
	random := rand.New(rand.NewPCG(storetest.Seed(t), 5))
	for _, buckets := range []int{3, 20, 1000} {
		plain, fast := twins(buckets)
		set, now, taken := drawSet(t, random), int64(1_800_000_000e6), 0
		for n := range 30_000 {
			switch random.IntN(400) {
			case 0:
				set = drawSet(t, random)
			case 1:
				now -= random.Int64N(3e6)
			default:
				now += random.Int64N(80_000)
			}
			req := limit.Request{Tenant: []string{"a", "b", fmt.Sprint("many", random.IntN(40))}[random.IntN(3)], Op: fmt.Sprint(random.IntN(3)), Cost: 1 + random.Int64N(4)}
			var want, got limit.Buffer
			set.Resolve(&req, nil, now, &want)
			at := limit.DecisionTime{Now: now}
			plain.Take(at, want.Items, want.Calls)
			var items limit.FastBuffer
			if fast.TakeFast(now, req.Tenant, set.ResolveFast(&req, nil, now, &items)) {
				taken++
				for i := range items.Items {
					got.AddFast(req.Tenant, &items.Items[i])
				}
			} else {
				set.Resolve(&req, nil, now, &got)
				fast.Take(at, got.Items, got.Calls)
			}
			for i := range want.Items { // the deny cache uses them, and is not on the fast path
				want.Items[i].State, want.Items[i].At, got.Items[i].State, got.Items[i].At = [6]int64{}, 0, [6]int64{}, 0
			}
			if !reflect.DeepEqual(got.Items, want.Items) {
				t.Fatalf("request %d, %+v:\n%+v\nwant\n%+v", n, req, got.Items, want.Items)
			}
			if random.IntN(10) == 0 {
				plain.Refund(at, want.Items)
				fast.Refund(at, want.Items)
			}
		}
		if plain.Len() != fast.Len() || plain.Overflows() != fast.Overflows() {
			t.Errorf("%d and %d buckets, %d and %d overflows", fast.Len(), plain.Len(), fast.Overflows(), plain.Overflows())
		}
		t.Logf("%d of 30,000 calls were fast with %d buckets, %d overflows", taken, buckets, plain.Overflows())
		if taken < 100 { // few buckets leave few calls to the fast path, as the seed has it
			t.Error("too few")
		}
	}
}

// drawSet draws limits that take the fast path.
func drawSet(t *testing.T, random *rand.Rand) *limit.Set {
	t.Helper()
	var specs []storetest.Spec
	for i := range 1 + random.IntN(4) {
		s := storetest.Spec{ID: fmt.Sprint("l", i), By: []string{"tenant", "op"}[:1+i%2], Rate: fmt.Sprintf("%d/%ds", 1+random.IntN(30), 1+random.IntN(4))}
		if s.Algorithm = []string{"token_bucket", "sliding_window", "fixed_window"}[random.IntN(3)]; s.Algorithm == "token_bucket" {
			s.Burst = fmt.Sprint(1 + random.IntN(50))
		}
		specs = append(specs, s)
	}
	return storetest.Compile(t, specs...)
}
