package limiter

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// queuesTracked bounds the buckets with a queue. A bucket whose hash collides with
// another one's sometimes loses its queue to it, and its callers return together. At 32
// bytes each this is half a megabyte.
const queuesTracked = 1 << 14

// retryScheduler spreads the retries of the callers that one bucket denied. It gives each
// caller a turn: the time at which the units for the callers denied before it are there
// as well, plus a random part of the time that its own units take to come. Other limiters
// draw all retries from the time that the callers so far will take. Early callers then
// crowd at its beginning, and each of them returns many times.
type retryScheduler struct {
	most   int64          // ms; 0 disables the jitter
	random func() float64 // from 0 to 1, on any goroutine
	// instances is how many proxies give out turns: each one assumes that the others deny
	// as many callers.
	instances func() int
	seed      maphash.Seed
	queues    []queue // none without jitter
}

// queue is the units for which the callers wait that one bucket denied. It is dropped
// when the parameters of the limit change, because its callers then wait for other units,
// and on RESET.
type queue struct {
	mu     sync.Mutex // guards the fields below
	bucket uint64     // hash of its name and the limit's parameters
	owner  uint64     // hash of the tenant or limit with which it is reset
	free   int64      // when the units for all of them are there, in microseconds since the epoch
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

// randUpTo draws a whole number of ms from 0 to spread, at most the largest jitter.
func (j *retryScheduler) randUpTo(spread int64) int64 {
	return int64(j.random() * float64(min(spread, j.most)+1))
}

// slotRetry is the longest time in ms after which a client should try to acquire a slot
// again: a slot may be returned at any time, long before its holder's time is over.
const slotRetry = 1000

// retry returns the ms after which a caller should come back that was denied at now, in
// ms since the epoch, with a true wait.
func (j *retryScheduler) retry(it *limit.Item, wait, now int64) int64 {
	if it.Limit.Params.Algorithm == bucket.AlgorithmConcurrency {
		return min(wait, slotRetry-j.randUpTo(slotRetry/2))
	}
	return wait + j.add(it, now)
}

// add queues a caller that was denied it at now, in ms since the epoch. It returns how
// many ms after its true wait the caller should come back: its turn plus U(0, max(10 % of
// the wait, cost/rate)). If that exceeds the largest jitter, add returns a random time up
// to the largest jitter. A denial of ten units weighs as much as ten denials of one.
func (j *retryScheduler) add(it *limit.Item, now int64) int64 {
	tenth := it.Wait / 10
	if j.most == 0 || it.Source == limit.SourcePolicy { // no caller waits for units there
		return j.randUpTo(tenth)
	}
	// After its full time a limit has all its units again, however many callers wait for
	// them.
	most := min(j.most, max(1, it.Limit.Params.FullTime()/1000))
	own := it.Limit.Params.RefillTime(it.Cost)
	turn := j.enqueue(it, (now+it.Wait)*1000, own, most) / 1000
	if spread := max(tenth, own/1000); turn+spread <= most {
		return turn + j.randUpTo(spread)
	}
	return j.randUpTo(most)
}

// peek returns a wait with the jitter that a single caller would see.
func (j *retryScheduler) peek(d *limit.Decision) int64 {
	if d.Allowed || d.RetryAfter <= 0 || j.most == 0 {
		return d.RetryAfter
	}
	return d.RetryAfter + j.randUpTo(d.RetryAfter/10)
}

// enqueue adds a caller to a bucket's queue. The caller could be admitted at first if the
// queue was empty, and needs the units that come in own microseconds. Enqueue returns how
// much later than first its turn is. The queue is never longer than most, in ms, however
// many callers one bucket has.
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

// owner returns the hash of an item's tenant, or of its limit if that spans tenants.
func (j *retryScheduler) owner(it *limit.Item) uint64 {
	if it.Limit.SpansTenants() {
		return maphash.String(j.seed, limit.SharedKeyPrefix(it.Limit.ID))
	}
	return maphash.Bytes(j.seed, it.Name[:it.TagLen])
}

// forget drops the queues of a tenant's buckets, or of those of a shared limit: key is
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
