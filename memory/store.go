package memory

import (
	"hash/maphash"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

const (
	// DefaultBuckets is the default of Options.Buckets: BenchmarkBucketBytes prints the
	// memory of a million buckets.
	DefaultBuckets = 1_000_000
	// shardCount is how many locks the buckets are spread over. A tenant's buckets share
	// one, which makes their decision atomic.
	shardCount = 64
)

// Options configure a Store.
type Options struct {
	// Buckets bounds the buckets; 0 means DefaultBuckets.
	Buckets int
}

// Store keeps buckets in memory. It is safe for concurrent use.
type Store struct {
	seed   maphash.Seed
	shards [shardCount]shard
	// overflow decides for new buckets while all slots hold live ones.
	overflow overflow
	budget   budget
	answers  replayBudget
	holds    replayBudget
}

// New returns an empty store.
func New(opts Options) *Store {
	if opts.Buckets <= 0 {
		opts.Buckets = DefaultBuckets
	}
	s := &Store{seed: maphash.MakeSeed()}
	s.budget.bound, s.answers.bound, s.holds.bound = int64(opts.Buckets), replayBytes, holdsBytes
	for i := range s.shards {
		s.shards[i].init(s.seed, &s.budget)
		s.shards[i].answers.budget, s.shards[i].holds.budget = &s.answers, &s.holds
	}
	return s
}

// Take decides calls one after the other, each all or nothing: it sets the verdicts of
// items[call.First:call.Last], and takes the units if no enforced item denies. It never
// fails.
func (s *Store) Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	s.decide(items, calls, at.Now, true)
}

// Peek sets the verdicts that Take would, and takes nothing.
func (s *Store) Peek(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	s.decide(items, calls, at.Now, false)
}

func (s *Store) decide(items []limit.Item, calls []limit.Call, now int64, take bool) {
	for _, call := range calls {
		group := items[call.First:call.Last]
		tag := s.tagOf(&group[0])
		s.decideCall(&s.shards[tag.shard()], tag, group, call, now, take)
	}
}

// decideCall evaluates every item, then takes the units if all enforced items admit. It
// replays the answer to a call that was granted before under the same RecordKey.
func (s *Store) decideCall(sh *shard, tag tagHash, items []limit.Item, call limit.Call, now int64, take bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now = limit.Monotonic(&sh.last, now)
	if call.RecordKey != nil && take && sh.replay(call, items, now) {
		return
	}
	if len(items) > len(sh.pending) {
		sh.pending = make([]pending, len(items))
	}
	room := s.find(sh, tag, items, now)
	granted, overflown := true, false
	defer func() {
		if overflown {
			s.overflow.mu.Unlock()
		}
	}()
	for i := range items {
		s.look(sh, &items[i], call, now, &sh.pending[i], &room, &overflown)
		granted = granted && (items[i].Allowed || !items[i].Enforced())
	}
	if take {
		for i := range items {
			sh.pending[i].store(sh, &items[i], call, now, granted)
		}
		if call.RecordKey != nil && granted {
			sh.record(call, items, now)
		}
	}
}

// pending is an evaluated item whose state is not stored yet.
type pending struct {
	hash      uint64
	index     uint32
	overflow  *bucket.State  // if the bucket has no room; guarded by overflow.mu
	units     *unitsBucket   // of a bucket with expiring units
	params    *bucket.Params // of the decision
	state     bucket.State
	rewritten bool
}

// find finds the buckets of a call, and returns for how many new ones there is room.
// Expired buckets are deleted only here, before any item is evaluated: the call's own may
// be among them.
func (s *Store) find(sh *shard, tag tagHash, items []limit.Item, now int64) (room int) {
	missing := 0
	for i := range items {
		p := &sh.pending[i]
		p.hash, p.index, p.units = tag.with(s.seed, items[i].Name[items[i].TagLen:]), none, nil
		if items[i].Limit.Params.Algorithm.ExpiresPerUnit() {
			if p.units = sh.units[string(items[i].Name)]; p.units == nil {
				missing++
			}
		} else if p.index = sh.find(p.hash, items[i].Name); p.index == none {
			missing++
		}
	}
	if missing > 0 && sh.makeRoom(missing, now) {
		for i := range items {
			if p := &sh.pending[i]; items[i].Limit.Params.Algorithm.ExpiresPerUnit() {
				p.units = sh.units[string(items[i].Name)]
			} else {
				p.index = sh.find(p.hash, items[i].Name)
			}
		}
	}
	return sh.budget.left()
}

// slotsFull is for how long, in microseconds, a slot is denied when there is no room for
// one.
const slotsFull = 1_000_000

// look evaluates an item. Room is how many buckets can still be added. Overflown reports
// that the call holds overflow.mu.
func (s *Store) look(sh *shard, it *limit.Item, call limit.Call, now int64, p *pending, room *int, overflown *bool) {
	p.overflow = nil
	p.params = &it.Limit.Params
	rewritten := false
	switch {
	case *room <= 0 && p.params.Algorithm == bucket.AlgorithmConcurrency:
		// Each slot takes room. An overflow bucket cannot decide: it does not know the
		// holders.
		s.overflow.count.Add(1)
		p.state = bucket.UnitLogState(p.params.Capacity, now+slotsFull, now+slotsFull, now+slotsFull)
	case p.units != nil || *room > 0 && p.params.Algorithm.ExpiresPerUnit():
		if p.units == nil {
			p.units = &unitsBucket{}
		}
		*room--
		p.state, rewritten = p.units.State(p.params, now, it.Cost, call.RecordTTL.Microseconds())
	case p.index != none:
		p.state = sh.slot(p.index).state
	case *room > 0:
		p.state = bucket.State{}
		*room--
	default:
		if !*overflown {
			s.overflow.mu.Lock()
			*overflown = true
		}
		p.overflow = s.overflow.bucket(it.Limit)
		p.state = *p.overflow
		if p.params.Algorithm.ExpiresPerUnit() {
			share := p.params.Share(1)
			p.params = &share
		}
	}
	// now always lies within Bounds: it is at most a second later than the time for which
	// they were computed, and they extend a whole day or month beyond that.
	it.Verdict, p.rewritten, _ = bucket.Decide(p.params, it.Bounds, &p.state, now, it.Cost)
	p.rewritten = p.rewritten || rewritten
	it.Source, it.Replayed, it.Recorded = limit.SourceStore, false, call.RecordKey != nil
	if !it.Allowed {
		it.State, it.At = p.state, now
	}
}

// store stores the new state of the item's bucket.
func (p *pending) store(sh *shard, it *limit.Item, call limit.Call, now int64, granted bool) {
	if !granted || !it.Allowed {
		if !p.rewritten {
			return
		}
		if p.units != nil {
			sh.takeUnits(p.units, it, &p.state, call, now, 0)
			return
		}
		if it.Allowed {
			bucket.Undo(p.params, &p.state, it.Cost)
		}
	}
	switch {
	case p.units != nil:
		sh.takeUnits(p.units, it, &p.state, call, now, it.Cost)
	case p.overflow != nil:
		*p.overflow = p.state
	case p.index != none:
		sh.update(p.index, &p.state, p.rewritten)
	default:
		sh.insert(p.hash, it.Name, it.Limit.Params.Algorithm, &p.state)
	}
}

// Refund returns the units of items to their buckets, in the windows in which they were
// charged. Consecutive items with the same record key are refunded together.
func (s *Store) Refund(at limit.DecisionTime, items []limit.Item) {
	for first := 0; first < len(items); {
		last := first + limit.RefundCall(items[first:])
		s.refund(at.Now, items[first:last])
		first = last
	}
}

func (s *Store) refund(now int64, items []limit.Item) {
	sh := &s.shards[s.tagOf(&items[0]).shard()]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now = limit.Monotonic(&sh.last, now)
	holder := ""
	if once := items[0].RecordKey; once != nil {
		var revoked bool
		if holder, revoked = sh.revoke(once, now); !revoked {
			return
		}
	}
	for i := range items {
		it := &items[i]
		sh.give(it.Name, &it.Limit.Params, it.Cost, it.Window, now, holder)
	}
}

// Start decides at once, see limiter.Store.
func (s *Store) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, _ func(uint64), _ uint64) (end func() bool) {
	s.Take(at, items, calls)
	return nil
}

// Flush does nothing: Start delays no calls.
func (s *Store) Flush() {}

// Pause returns 0: the store always answers.
func (s *Store) Pause(*limit.Item) time.Duration { return 0 }

// Saturated returns false: a decision here is as cheap as the check.
func (s *Store) Saturated(*limit.Item) bool { return false }

// Overflows returns how many decisions overflow buckets made because the store was full
// of live ones.
func (s *Store) Overflows() int64 { return s.overflow.count.Load() }

// Forgotten returns how many records were deleted for lack of room while their calls
// could be replayed or settled.
func (s *Store) Forgotten() int64 { return s.answers.forgotten.Load() + s.holds.forgotten.Load() }

// Len returns the number of buckets.
func (s *Store) Len() int { return int(s.budget.live.Load()) }

// tagOf returns the hash of the tag of an item's call, which decides its shard.
func (s *Store) tagOf(it *limit.Item) tagHash { return hashTag(s.seed, it.Name[:it.TagLen]) }
