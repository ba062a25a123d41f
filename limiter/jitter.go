package limiter

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// denialsTracked is how many buckets' denials are counted at a time. A bucket
// that shares its place with another one loses its count to it now and then,
// and spreads its callers less. At 32 bytes each this is half a megabyte.
const denialsTracked = 1 << 14

// jitter spreads the retries of the callers that one bucket denied: with D of
// them waiting, the last can succeed only D units later than the first.
type jitter struct {
	most    int64 // ms; 0 switches it off
	random  func() float64
	seed    maphash.Seed
	denials [denialsTracked]denials
}

// denials counts what one bucket denied in its current wait.
type denials struct {
	mu     sync.Mutex // guards the rest
	bucket uint64     // hash of its name
	until  int64      // ms since the epoch: the end of the wait
	units  int64
}

func newJitter(most time.Duration, random func() float64) *jitter {
	if random == nil {
		random = rand.Float64
	}
	return &jitter{most: most.Milliseconds(), random: random, seed: maphash.MakeSeed()}
}

// upTo draws a whole number of ms from 0 to spread, or to the largest jitter.
func (j *jitter) upTo(spread int64) int64 {
	return int64(j.random() * float64(min(spread, j.most)+1))
}

// add counts the denial of it at now, in ms since the epoch, and returns how much
// later than its true wait the caller should come back: U(0, J) with
// J = max(10 % of the wait, D/rate), in ms. D counts units, so that a denial of
// ten weighs as much as ten denials of one.
func (j *jitter) add(it *limit.Item, now int64) int64 {
	if j.most == 0 {
		return 0
	}
	spread := it.Wait / 10
	if it.Source != limit.SourcePolicy { // nobody waits for units there
		spread = max(spread, it.Limit.Params.RefillTime(j.count(it, now))/1000)
	}
	return j.upTo(spread)
}

// peek returns a wait with the jitter that one caller alone would see.
func (j *jitter) peek(d *limit.Decision) int64 {
	if d.Allowed || d.RetryAfter <= 0 || j.most == 0 {
		return d.RetryAfter
	}
	return d.RetryAfter + j.upTo(d.RetryAfter/10)
}

// count returns the units denied in the bucket's current wait, these included.
func (j *jitter) count(it *limit.Item, now int64) int64 {
	bucket := maphash.Bytes(j.seed, it.Name)
	d := &j.denials[bucket%denialsTracked]
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bucket != bucket || d.until <= now {
		d.bucket, d.until, d.units = bucket, now+it.Wait, 0
	}
	d.units = min(d.units+it.Cost, limit.MaxCapacity)
	return d.units
}
