package backstop

import (
	"testing"

	"github.com/limitgate/limitgate/limit/bucket"
)

// TestOfferOfOneRate checks that evicted buckets of limits with one rate and different
// bursts together start with no more than one bucket earns.
func TestOfferOfOneRate(t *testing.T) {
	a := bucket.Params{Algorithm: bucket.AlgorithmTokenBucket, Count: 1, Period: 100_000, Capacity: 10}
	b := a
	b.Capacity = 1000
	now := int64(1_800_000_000_000_000)
	m := &missed{until: now + 1e9}
	// B draws all it may.
	for m.offer(&b, now) > 0 {
		n := m.offer(&b, now)
		m.state = bucket.Refund(&asTokenBucket, m.state, -n, 0, now)
	}
	total := int64(0)
	now += 1_000_000 // one second: one bucket earns 10
	m.offer(&a, now) // a peek of a new bucket of A
	for {
		n := m.offer(&b, now)
		if n <= 0 || total > 5000 {
			break
		}
		m.state = bucket.Refund(&asTokenBucket, m.state, -n, 0, now)
		total += n
	}
	if total > 11 {
		t.Errorf("%d units are offered a second later, where one bucket earns 10", total)
	}
}
