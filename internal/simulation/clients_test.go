package simulation

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

const (
	// crowd is how many clients are denied in the same millisecond, and crowdRate for how
	// many of them there are units each second.
	crowd     = 10_000
	crowdRate = "1000/s"
	// crowdBurst makes the limit's full time as long as all of them need: turns are not
	// later than that.
	crowdBurst = "10000"
	crowdFull  = 10 * time.Second // the minimum time in which all can be admitted
	// backoffFirst and backoffMost bound the pauses of clients that ignore retry_after.
	backoffFirst = 100 * time.Millisecond
	backoffMost  = 30 * time.Second
	// enough ends a run whose clients are never all admitted.
	enough = time.Hour
)

// patience returns how long a client waits before its next request, in microseconds,
// after denials denials and with the last retry_after in ms.
type patience func(random *rand.Rand, denials int, retryAfter int64) int64

// obedient clients wait for retry_after.
func obedient(_ *rand.Rand, _ int, retryAfter int64) int64 { return retryAfter * 1000 }

// doubling clients wait twice as long each time.
func doubling(_ *rand.Rand, denials int, _ int64) int64 {
	return min(backoffFirst<<min(denials-1, 20), backoffMost).Microseconds()
}

// scattered clients wait a random time up to that.
func scattered(random *rand.Rand, denials int, _ int64) int64 {
	return 1 + random.Int64N(doubling(random, denials, 0))
}

// crowdResult is the result of a run of clients.
type crowdResult struct {
	first    histogram // the clients' first retries
	admitted int       // at the first retry
	requests int       // from the first retry on
	last     int64     // when the last of them was admitted, -1 if never
	elapsed  int64     // between the first retry and the last first retry
}

// crowdRun is clients in front of one proxy.
type crowdRun struct {
	schedule
	result crowdResult
	now    int64
	gate   *limiter.Limiter
	random *rand.Rand
	wait   patience
	left   int // not admitted yet
	ends   [2]int64
	batch  limiter.Batch
}

// runCrowd denies the clients' requests in the same millisecond, and lets the clients
// retry.
func runCrowd(tb testing.TB, seed uint64, wait patience) crowdResult {
	tb.Helper()
	c := &crowdRun{random: rand.New(rand.NewPCG(seed, 1)), wait: wait, left: crowd, ends: [2]int64{enough.Microseconds(), 0}}
	set := storetest.Compile(tb, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: crowdRate, Burst: crowdBurst})
	jitter := rand.New(rand.NewPCG(seed, 2))
	epoch := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c.gate = limiter.New(limiter.Options{
		Store: memory.New(memory.Options{Buckets: 100}), Timeout: time.Second,
		Now:         func() time.Time { return epoch.Add(time.Duration(c.now) * time.Microsecond) },
		RetryJitter: 3 * crowdFull, Random: jitter.Float64, DenyCacheSize: 100,
	}, set)
	c.ask(set.Limits[0].Params.Capacity) // another client's request, before those of the crowd
	for client := range crowd {
		c.now = int64(client * 500 / crowd) // within half a millisecond: nothing refills
		if d := c.ask(1); d.Allowed {
			tb.Fatalf("client %d was admitted", client)
		} else {
			c.comeBack(1, d.RetryAfter)
		}
	}
	for e, ok := c.next(enough.Microseconds()); ok; e, ok = c.next(enough.Microseconds()) {
		c.now = e.at
		e.do()
	}
	c.result.elapsed = c.ends[1] - c.ends[0]
	if c.left > 0 {
		c.result.last = -1
	}
	return c.result
}

// comeBack schedules the retry of a client after denials denials.
func (c *crowdRun) comeBack(denials int, retryAfter int64) {
	c.add(c.now+c.wait(c.random, denials, retryAfter), func() {
		c.result.requests++
		if denials == 1 {
			c.result.first.add(c.now)
			c.ends = [2]int64{min(c.ends[0], c.now), max(c.ends[1], c.now)}
		}
		d := c.ask(1)
		if !d.Allowed {
			c.comeBack(denials+1, d.RetryAfter)
			return
		}
		if denials == 1 {
			c.result.admitted++
		}
		c.left--
		c.result.last = c.now
	})
}

func (c *crowdRun) ask(cost int64) limit.Decision {
	c.batch.Reset()
	c.batch.Requests = append(c.batch.Requests, limit.Request{Tenant: "t", Cost: cost})
	c.gate.Decide(&c.batch)
	return c.batch.Decisions[0]
}
