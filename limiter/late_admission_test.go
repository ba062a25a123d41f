package limiter

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// TestLateAdmissionVoidsRefusal checks that units that the store granted after the caller
// had left are missing from the cached state.
func TestLateAdmissionVoidsRefusal(t *testing.T) {
	p := bucket.Params{Algorithm: bucket.AlgorithmTokenBucket, Count: 1, Period: 1_000_000, Capacity: 5}
	l := New(Options{DenyCacheSize: 10}, nil)
	lim := &limit.Limit{ID: "x", Params: p}
	mk := func(cost int64) limit.Item {
		return limit.Item{Limit: lim, Name: []byte("{t}x"), Cost: cost, TagLen: 3, KeyLen: 3}
	}
	start := time.Now()
	at := start.UnixMicro()
	den := mk(4)
	den.Source, den.State, den.At = limit.SourceStore, p.StateAtLevel(3_000_000, at), at
	den.Verdict = bucket.Verdict{Wait: 1000}
	l.deny.update([]limit.Item{den}, l.instant(start), l.instant(start))
	ok := mk(1)
	ok.Source, ok.Verdict = limit.SourceStore, bucket.Verdict{Allowed: true}
	l.CacheLateReply([]limit.Item{ok}, start) // the store admitted 1 late: 2 are left, 4 need 2 s
	it := mk(4)
	if l.deny.lookup(&it, l.instant(start)) {
		t.Errorf("refused by the cache with a wait of %d ms, the true one is 2000", it.Wait)
	}
}
