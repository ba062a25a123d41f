package limiter

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// TestOldRefusalLearntLast checks that a denial that was decided before an admission, and
// cached after it, is not kept.
func TestOldRefusalLearntLast(t *testing.T) {
	p := bucket.Params{Algorithm: bucket.AlgorithmTokenBucket, Count: 1, Period: 1_000_000, Capacity: 5}
	l := New(Options{DenyCacheSize: 10}, nil)
	lim := &limit.Limit{ID: "x", Params: p}
	start := time.Now()
	at := start.UnixMicro()
	mk := func(cost, content int64, off time.Duration, ok bool) limit.Item {
		it := limit.Item{Limit: lim, Name: []byte("{t}x"), Cost: cost, TagLen: 3, KeyLen: 3, Source: limit.SourceStore}
		it.State, it.At = p.StateAtLevel(content*1_000_000, at+off.Microseconds()), at+off.Microseconds()
		it.Allowed = ok
		if !ok {
			it.Wait = (cost - content) * 1000
		}
		return it
	}
	s := l.instant(start)
	l.deny.update([]limit.Item{mk(4, 3, 0, false)}, s, s+100)                       // cached
	old := mk(4, 3, time.Millisecond, false)                                        // decided first
	l.deny.update([]limit.Item{mk(1, 3, 2*time.Millisecond, true)}, s+1000, s+2500) // decided second, cached first: 2 left
	l.deny.update([]limit.Item{old}, s+1000, s+2600)
	it := mk(4, 0, 0, false)
	it.Source, it.Verdict = limit.SourceNone, bucket.Verdict{}
	if l.deny.lookup(&it, s+3000) && it.Wait < 1990 {
		t.Errorf("wait of %d ms, the true one is about 1998", it.Wait)
	}
}
