package limiter

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// TestLeasesForgotten checks that leases of buckets without requests are deleted.
func TestLeasesForgotten(t *testing.T) {
	for _, auto := range []bool{false, true} {
		ls := newLeases(func() int { return 1 })
		lim := &limit.Limit{
			ID: "t", Params: bucket.Params{Algorithm: bucket.AlgorithmTokenBucket, Count: 1, Period: 1000, Capacity: 1000},
			Lease: limit.Lease{On: true, Auto: auto, Size: 10, TTL: time.Second},
		}
		call := []limit.Item{{Limit: lim, Name: []byte("lg:t:{x}:t;t"), TagLen: 8, KeyLen: 8, Cost: 1}}
		now := int64(1e15)
		if ls.take(call, now) {
			t.Fatal()
		}
		call[0].Source, call[0].Allowed, call[0].LeaseGranted = limit.SourceStore, true, call[0].LeaseWanted
		call[0].Remaining = 900
		ls.put(call, now, now)
		for range 6000 { // ten minutes
			now += 100_000
			ls.collect(now, false)
		}
		if n := ls.held.Load(); n != 0 {
			t.Errorf("auto=%v: %d leases are kept ten minutes after the last request", auto, n)
		}
	}
}

// TestStaleLeaseStays checks a call by the old limit that is under way while the limits
// change. The bucket of the new limit then gets ten checks a second, and is leased all
// the same.
func TestStaleLeaseStays(t *testing.T) {
	ls := newLeases(func() int { return 1 })
	mk := func(capacity int64) *limit.Limit {
		return &limit.Limit{
			ID: "t", Params: bucket.Params{Algorithm: bucket.AlgorithmTokenBucket, Count: 1, Period: 1000, Capacity: capacity},
			Lease: limit.Lease{On: true, Size: 10, TTL: time.Second},
		}
	}
	call := func(l *limit.Limit) []limit.Item {
		return []limit.Item{{Limit: l, Name: []byte("lg:t:{x}:t;t"), TagLen: 8, KeyLen: 8, Cost: 1}}
	}
	answer := func(c []limit.Item, now int64) {
		c[0].Source, c[0].Allowed, c[0].LeaseGranted, c[0].Remaining = limit.SourceStore, true, c[0].LeaseWanted, 900
		ls.put(c, now, now)
	}
	now := int64(1e15)
	old := call(mk(1000))
	ls.take(old, now)
	ls.collect(now, true) // the limits changed
	answer(old, now)
	raised, local := mk(2000), 0
	for range 6000 {
		now += 100_000
		c := call(raised)
		if ls.take(c, now) {
			local++
		} else {
			answer(c, now)
		}
		ls.collect(now, false)
	}
	if local == 0 {
		t.Errorf("in ten minutes none of 6000 requests was decided from a lease")
	}
}

// TestLateGrants checks that units that arrive after their caller has left are held,
// unless the lease was opened after the call was sent, waits for another call, or would
// be too large.
func TestLateGrants(t *testing.T) {
	lim := &limit.Limit{
		ID: "t", Params: bucket.Params{Algorithm: bucket.AlgorithmTokenBucket, Count: 1, Period: 1000, Capacity: 1000},
		Lease: limit.Lease{On: true, Size: 40, TTL: time.Second},
	}
	const now = int64(1e15)
	for name, c := range map[string]struct {
		sent  int64
		again bool // the lease waits for another call
		more  int64
		holds bool
	}{
		"in time":     {sent: now + 1, more: 40, holds: true},
		"a reset ago": {sent: now - 1, more: 40},
		"too many":    {sent: now + 1, more: 51},
		"asking":      {sent: now + 1, more: 40, again: true},
	} {
		ls := newLeases(func() int { return 1 })
		call := []limit.Item{{Limit: lim, Name: []byte("lg:t:{x}:t;t"), TagLen: 8, KeyLen: 8, Cost: 1}}
		ls.take(call, now)
		if c.again {
			ls.shard(&call[0]).leases[string(call[0].Name)].asking = true
		}
		call[0].Source, call[0].Allowed, call[0].LeaseGranted, call[0].Remaining = limit.SourceStore, true, c.more, 900
		ls.putLate(call, c.sent, now+2)
		call[0].Source = limit.SourceNone
		if got := ls.take(call, now+3); got != c.holds {
			t.Errorf("%s: held = %v, want %v", name, got, c.holds)
		}
	}
}
