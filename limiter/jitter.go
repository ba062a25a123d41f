package limiter

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/limitgate/limitgate/limit"
)

// denialsTracked bounds the buckets whose denials are counted for the jitter.
// A bucket that falls out only spreads its callers less.
const denialsTracked = 16384

// jitter spreads the retries of the callers that one bucket denied: with D of
// them waiting, the last can succeed only D units later than the first.
type jitter struct {
	most int64 // ms; 0 switches it off
	seed maphash.Seed
	mu   sync.Mutex // guards denials between a look and an update
	// denials counts, by the hash of a bucket's name, what was denied in the
	// current wait. Two buckets that collide spread a little more.
	denials *lru.Cache[uint64, denials]
}

type denials struct {
	until int64 // ms since the epoch: the end of the wait
	units int64
}

func newJitter(most time.Duration) *jitter {
	cache, _ := lru.New[uint64, denials](denialsTracked) // fails only for a size below 1
	return &jitter{most: most.Milliseconds(), seed: maphash.MakeSeed(), denials: cache}
}

// add counts the denial of it at now and returns how much later than its true
// wait the caller should come back: U(0, J) with
// J = max(10 % of the wait, D/rate), in ms.
func (j *jitter) add(it *limit.Item, now time.Time) int64 {
	if j.most == 0 {
		return 0
	}
	denied := j.count(it, now.UnixMilli())
	spread := max(it.Wait/10, refillMillis(&it.Limit.Params, denied))
	return rand.Int64N(min(spread, j.most) + 1)
}

// peek returns a wait with the jitter that one caller alone would see.
func (j *jitter) peek(d *limit.Decision) int64 {
	if d.Allowed || d.RetryAfter <= 0 || j.most == 0 {
		return d.RetryAfter
	}
	return d.RetryAfter + rand.Int64N(min(d.RetryAfter/10, j.most)+1)
}

// count returns the units denied in the bucket's current wait, these included.
func (j *jitter) count(it *limit.Item, now int64) int64 {
	if it.Name == nil {
		return it.Cost
	}
	key := maphash.Bytes(j.seed, it.Name)
	j.mu.Lock()
	defer j.mu.Unlock()
	d, ok := j.denials.Peek(key)
	if !ok || d.until <= now {
		d = denials{until: now + it.Wait}
	}
	d.units = min(d.units+it.Cost, limit.MaxCapacity)
	j.denials.Add(key, d)
	return d.units
}

// refillMillis returns the ms in which the limit refills units.
func refillMillis(p *limit.Params, units int64) int64 {
	return p.RefillTime(units) / 1000
}
