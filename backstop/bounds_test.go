package backstop

import (
	"testing"
	"unsafe"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// TestTotalKeepsNames checks that a tenant's name is copied, since the connection reuses
// the memory of its request.
func TestTotalKeepsNames(t *testing.T) {
	total := newTotal(10)
	buf := make([]byte, 6)
	for i := range 100 {
		for _, tenant := range []string{"first ", "second", "third "} {
			copy(buf, tenant)
			total.take(int64(i)*100, unsafe.String(&buf[0], len(buf)), 1)
		}
	}
	copy(buf, "nobody")
	if len(total.tenants) != 3 {
		t.Errorf("%d tenants are known, of 3", len(total.tenants))
	}
	for _, tenant := range []string{"first ", "second", "third "} {
		if total.tenants[tenant] == nil {
			t.Errorf("tenant %q is not known", tenant)
		}
	}
}

// TestSharesOfMany checks shares of the slowest and largest limits among very many
// instances, in all combinations: they are decided, and none admits more than it holds.
func TestSharesOfMany(t *testing.T) {
	now := int64(1_700_000_000_000_000)
	for _, p := range []bucket.Params{
		{Algorithm: bucket.AlgorithmTokenBucket, Count: 1, Period: bucket.MaxPeriod, Capacity: 35},
		{Algorithm: bucket.AlgorithmTokenBucket, Count: bucket.MaxCapacity, Period: 1_000_000, Capacity: bucket.MaxCapacity},
		{Algorithm: bucket.AlgorithmFixedWindow, Count: bucket.MaxCapacity, Period: bucket.MaxPeriod, Capacity: bucket.MaxCapacity},
		{Algorithm: bucket.AlgorithmSlidingWindow, Count: 1, Period: bucket.MaxPeriod, Capacity: 1},
	} {
		for _, n := range []int64{1, 7, 1000, 1_000_000, 1 << 40, 1<<62 - 1} {
			var s shares
			s.init(100)
			name := []byte("lg:t:{x}:n;t")
			l := &limit.Limit{Params: p}
			for _, cost := range []int64{1, 2, p.Capacity, min(p.Capacity, bucket.MaxCost), 1} {
				now += 1000
				call := []limit.Item{{Limit: l, Name: name, KeyLen: 8, TagLen: 8, Cost: cost}}
				s.decide(call, n, now, true)
				if it := &call[0]; it.Remaining < 0 || it.Remaining > p.Capacity || it.Reset < 0 || it.Wait < bucket.Never {
					t.Errorf("%+v among %d, cost %d: %+v", p, n, cost, it.Verdict)
				}
			}
		}
	}
}

// TestShareOutlivesItsPlace checks that a call with more buckets than there is room for
// loses no units that it took from the existing ones.
func TestShareOutlivesItsPlace(t *testing.T) {
	now := int64(1_700_000_000_000_000)
	var s shares
	s.init(shardCount) // one bucket in each shard
	l := &limit.Limit{Params: bucket.Params{Algorithm: bucket.AlgorithmTokenBucket, Count: 1, Period: bucket.MaxPeriod, Capacity: 10}}
	item := func(name string) limit.Item {
		return limit.Item{Limit: l, Name: []byte("lg:t:{x}" + name), KeyLen: 8, TagLen: 8, Cost: 4}
	}
	s.decide([]limit.Item{item(":known")}, 1, now, true)
	// The new bucket evicts the known one, which is stored after it.
	both := []limit.Item{item(":new"), item(":known")}
	s.decide(both, 1, now+1, true)
	known := item(":known")
	if _, ok := s.shard(&known).buckets.Peek(string(known.Name)); !ok || both[1].Remaining != 2 {
		t.Errorf("of 10 units 4 and 4 were taken: %+v, and the bucket is kept: %v", both[1].Verdict, ok)
	}
	again := []limit.Item{known}
	s.decide(again, 1, now+2, true)
	if again[0].Allowed || again[0].Remaining != 2 {
		t.Errorf("the next 4 units: %+v", again[0].Verdict)
	}
}
