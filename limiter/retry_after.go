package limiter

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// queuesTracked is how many buckets' queues are kept at a time. A bucket that shares
// its place with another one loses its queue to it now and then, and has its callers
// come back together. At 32 bytes each this is half a megabyte.
const queuesTracked = 1 << 14

// retryScheduler spreads the retries of the callers that one bucket denied. Each is told to
// come when it is its turn: when the units that those denied before it wait for are
// there as well, and at some moment of the time that its own take to come. Drawing
// all from the time that the callers so far will take, as limiters do, has the early
// ones crowd at its beginning, and each of them return many times.
type retryScheduler struct {
	most   int64          // ms; 0 switches it off
	random func() float64 // from 0 to 1, on any goroutine
	// instances is how many proxies hand out turns: each as if the others had denied
	// as many.
	instances func() int
	seed      maphash.Seed
	queues    []queue // none without jitter
}

// queue is what the callers wait for that one bucket denied. It ends when the parameters of
// the limit change, for then its callers wait for something else, and on RESET.
type queue struct {
	mu     sync.Mutex // guards the rest
	bucket uint64     // hash of its name and the limit's parameters
	owner  uint64     // hash of what is reset together with it
	free   int64      // when the units are there for all of them, in microseconds since the epoch
}

func newRetryScheduler(most time.Duration, random func() float64, instances func() int) *retryScheduler {
	if random == nil {
		random = rand.Float64
	}
	j := &retryScheduler{most: most.Milliseconds(), random: random, instances: instances, seed: maphash.MakeSeed()}
	if j.most > 0 {
		j.queues = make([]queue, queuesTracked)
	}
	return j
}

// randUpTo draws a whole number of ms from 0 to spread, or to the largest jitter.
func (j *retryScheduler) randUpTo(spread int64) int64 {
	return int64(j.random() * float64(min(spread, j.most)+1))
}

// slotRetry is after how many ms a slot should be asked for again at the latest: it may
// be given back at any moment, long before the time of its holder is up.
const slotRetry = 1000

// retry returns after how many ms a caller should come back whom it denied at now, in ms
// since the epoch, with a true wait.
func (j *retryScheduler) retry(it *limit.Item, wait, now int64) int64 {
	if it.Limit.Params.Algorithm == limit.AlgorithmConcurrency {
		return min(wait, slotRetry-j.randUpTo(slotRetry/2))
	}
	return wait + j.add(it, now)
}

// add queues a caller that was denied it at now, in ms since the epoch, and returns
// how much later than its true wait it should come back, in ms: its turn and
// U(0, max(10 % of the wait, cost/rate)), or where that is beyond the largest jitter,
// any moment up to it. A denial of ten units weighs as much as ten denials of one.
func (j *retryScheduler) add(it *limit.Item, now int64) int64 {
	tenth := it.Wait / 10
	if j.most == 0 || it.Source == limit.SourcePolicy { // nobody waits for units there
		return j.randUpTo(tenth)
	}
	// After its full time a limit has all its units again, however many wait for them.
	most := min(j.most, max(1, it.Limit.Params.FullTime()/1000))
	own := it.Limit.Params.RefillTime(it.Cost)
	turn := j.enqueue(it, (now+it.Wait)*1000, own, most) / 1000
	if spread := max(tenth, own/1000); turn+spread <= most {
		return turn + j.randUpTo(spread)
	}
	return j.randUpTo(most)
}

// peek returns a wait with the jitter that one caller alone would see.
func (j *retryScheduler) peek(d *limit.Decision) int64 {
	if d.Allowed || d.RetryAfter <= 0 || j.most == 0 {
		return d.RetryAfter
	}
	return d.RetryAfter + j.randUpTo(d.RetryAfter/10)
}

// enqueue adds a caller to a bucket's queue that could be admitted at first if there
// was none, and needs what comes in own microseconds. It returns how much later than
// first its turn is. The queue is not longer than most, in ms, however many
// callers one bucket has.
func (j *retryScheduler) enqueue(it *limit.Item, first, own, most int64) int64 {
	bucket := j.hash(it)
	q := &j.queues[bucket%queuesTracked]
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bucket != bucket || q.free < first {
		q.bucket, q.owner, q.free = bucket, j.owner(it), first
	}
	turn := q.free - first
	own *= int64(max(1, j.instances()))
	q.free = min(q.free+own, first+most*1000+own)
	return turn
}

// hash returns the hash of an item's bucket and of the parameters of its limit.
func (j *retryScheduler) hash(it *limit.Item) uint64 {
	const prime = 0x9E3779B97F4A7C15
	p, h := &it.Limit.Params, maphash.Bytes(j.seed, it.Name)
	for _, n := range [...]int64{int64(p.Algorithm), p.Count, p.Period, p.Capacity} {
		h = (h ^ uint64(n)) * prime
	}
	return h
}

// owner returns the hash of an item's tenant, or of its limit where that spans tenants.
func (j *retryScheduler) owner(it *limit.Item) uint64 {
	if it.Limit.SpansTenants() {
		return maphash.String(j.seed, limit.SharedKeyPrefix(it.Limit.ID))
	}
	return maphash.Bytes(j.seed, it.Name[:it.TagLen])
}

// forget ends the queues of a tenant's buckets, or of those of a shared limit: key is
// limit.TenantKey or limit.SharedKeyPrefix.
func (j *retryScheduler) forget(key string) {
	owner := maphash.String(j.seed, key)
	for i := range j.queues {
		q := &j.queues[i]
		q.mu.Lock()
		if q.owner == owner {
			q.bucket, q.owner, q.free = 0, 0, 0
		}
		q.mu.Unlock()
	}
}
