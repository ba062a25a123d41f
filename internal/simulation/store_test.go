package simulation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/limit"
)

const (
	// shardCount is the number of primaries over which the hash slots are spread.
	shardCount = 40
	// halfTrip is the travel time of a call to a shard, or back, in microseconds.
	halfTrip = 250
	// decisionTime is the maximum time of a decision, and ioTime that of a refund, in
	// microseconds: the defaults of the proxy and of the store on Redis.
	decisionTime = 5_000
	ioTime       = 250_000
)

var (
	errRefused = errors.New("send call: connection refused")
	errOverdue = errors.New("send call: no reply in time")
)

// store is one proxy's store. It asks its breakers and reports to them as the store on
// Redis does.
type store struct {
	fleet    *fleet
	breakers [shardCount]*breaker.Breaker
	gone     bool // its proxy is dead
	// answered is when a shard made the last decision that was returned.
	answered int64
}

// newStore returns the store of a proxy, whose breakers draw from the fleet's seed.
func (f *fleet) newStore() *store {
	s := &store{fleet: f}
	random := f.random.Float64
	for i := range s.breakers {
		s.breakers[i] = breaker.New(breaker.Options{
			Random: random, Changed: func(t breaker.Transition) { f.changed(s, i, t) },
		})
	}
	return s
}

// shardOf returns the number of the shard that holds an item's bucket.
func shardOf(it *limit.Item) int { return shardOfSlot(it.HashSlot()) }

func shardOfSlot(slot uint16) int { return int(slot) * shardCount / limit.NumHashSlots }

// call is one pending check.
type call struct {
	store    *store
	shard    int
	own      limit.Item   // outlives the caller
	items    []limit.Item // the caller's
	deadline int64
	decided  int64
	left     bool // the caller does not wait any more
	done     func(uint64)
	token    uint64
}

// Start sends a request's only call, see limiter.Store.
func (s *store) Start(_ limit.DecisionTime, items []limit.Item, calls []limit.Call, done func(uint64), token uint64) func() bool {
	group := items[calls[0].First:calls[0].Last]
	f, n := s.fleet, shardOf(&group[0])
	if !s.breakers[n].Allow(f.time()) {
		return nil
	}
	if f.shards[n].health == killed {
		s.breakers[n].Record(f.time(), breaker.Outcome{Stuck: 1, Err: errRefused})
		return nil
	}
	c := &call{store: s, shard: n, own: group[0], items: group, deadline: f.now + decisionTime, done: done, token: token}
	c.own.Name = slices.Clone(group[0].Name)
	there := f.now + halfTrip + f.delay()
	f.add(there, c.arrive)
	if there > c.deadline {
		f.add(c.deadline, c.leave)
	}
	return func() bool { return false }
}

// arrive decides a call at the shard, whether or not its caller still waits.
func (c *call) arrive() {
	f := c.store.fleet
	if s := f.shards[c.shard]; s.health == well {
		s.take(&c.own, f.epoch.UnixMicro(), f.now)
		c.decided = f.now
		if f.now+halfTrip < c.deadline {
			f.add(f.now+halfTrip, c.reply)
			return
		}
	}
	f.add(max(f.now, c.deadline), c.leave)
}

// reply delivers the verdict to a caller that still waits.
func (c *call) reply() {
	if c.store.gone {
		return
	}
	it := &c.items[0]
	it.Verdict, it.Source, it.LeaseGranted = c.own.Verdict, c.own.Source, c.own.LeaseGranted
	c.store.breakers[c.shard].Record(c.store.fleet.time(), breaker.Outcome{OK: 1})
	c.store.answered = c.decided
	c.done(c.token)
}

// leave ends the waiting at the deadline.
func (c *call) leave() {
	if c.left || c.store.gone {
		return
	}
	c.left = true
	c.store.breakers[c.shard].Record(c.store.fleet.time(), breaker.Outcome{Failed: 1, Err: errOverdue})
	c.done(c.token)
}

// Refund returns the units of leases, shard by shard, see limiter.Store. It is called by
// the limiters' own goroutines.
func (s *store) Refund(_ limit.DecisionTime, items []limit.Item) {
	f := s.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.gone {
		return
	}
	items = slices.Clone(items)
	slices.SortFunc(items, func(a, b limit.Item) int { return shardOf(&a) - shardOf(&b) })
	asked, allowed := -1, false
	for i := range items {
		n := shardOf(&items[i])
		if n != asked {
			asked, allowed = n, s.breakers[n].Allow(f.time())
			if allowed {
				s.recordRefund(n)
			}
		}
		if allowed && f.shards[n].health == well {
			f.shards[n].refund(&items[i], f.epoch.UnixMicro(), f.now)
		}
	}
}

// recordRefund reports the result of a refund to the breaker.
func (s *store) recordRefund(n int) {
	f, b := s.fleet, s.breakers[n]
	switch f.shards[n].health {
	case well:
		b.Record(f.time(), breaker.Outcome{OK: 1})
	case killed:
		b.Record(f.time(), breaker.Outcome{Stuck: 1, Err: errRefused})
	default:
		f.add(f.now+ioTime, func() { b.Record(f.time(), breaker.Outcome{Failed: 1, Err: errOverdue}) })
	}
}

// Flush has nothing to do: calls are sent at once.
func (s *store) Flush() {}

// Take panics: a simulation must not block.
func (s *store) Take(limit.DecisionTime, []limit.Item, []limit.Call) {
	panic("take: the fleet only begins")
}

// Peek is not used either.
func (s *store) Peek(limit.DecisionTime, []limit.Item, []limit.Call) {
	panic("peek: the fleet only begins")
}

// Reset does nothing.
func (s *store) Reset(context.Context, string, string) (int64, error) { return 0, nil }

func (s *store) Forget(context.Context, string) (bool, error) { return false, nil }

// Settle finds nothing: the simulation has no reservations and no slots.
func (s *store) Settle(limit.DecisionTime, *limit.Settlement) (limit.Outcome, []string) {
	return limit.OutcomeUnknown, nil
}

// Saturated is false: the simulated shards are never overloaded.
func (s *store) Saturated(*limit.Item) bool { return false }

// Pause is 0: no limit of the fleet fails closed.
func (s *store) Pause(*limit.Item) time.Duration { return 0 }

// Locate returns a constant.
func (s *store) Locate(*limit.Item) string { return "simulation" }
