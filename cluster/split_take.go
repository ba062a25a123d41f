package cluster

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/limitgate/limitgate/limit"
)

const (
	// hotTick is how often it is looked at which buckets are hot.
	hotTick = time.Second
	// maxRefills bounds the parts that wait for units. Others are asked for again by
	// whoever finds them empty.
	maxRefills = 256
)

// refill is a part that wants units.
type refill struct {
	item   limit.Item // of the bucket, with a name of its own
	bucket *splitBucket
	part   int
}

// splitCall is a call of which one bucket is split.
type splitCall struct {
	limit.Call
	k      int // the item of that bucket, in the call
	bucket *splitBucket
	part   int          // that is asked, or -1
	other  limit.Call   // the call's other items, among those that are asked for together
	was    []limit.Item // how the bucket refused it
}

// takeSplit decides calls of which one bucket each is split, see Take. Most are decided
// by a part, and the others of their buckets behind it; what no part has, the bucket
// decides, together with them.
func (s *Store) takeSplit(at limit.Moment, items []limit.Item, calls []limit.Call) {
	var byParts, denied []splitCall
	var byBucket []limit.Call
	first := rand.IntN(limit.MaxShards) // the checks of a batch are decided together
	for _, c := range calls {
		call := items[c.First:c.Last]
		if k := s.splitItem(call); k >= 0 {
			if b := s.splits.of(&call[k]); b != nil {
				byParts = append(byParts, splitCall{Call: c, k: k, bucket: b, part: b.pick(call[k].Cost, first)})
				continue
			}
		}
		byBucket = append(byBucket, c)
	}
	rest := s.takeByParts(at, items, byParts)
	for _, c := range rest {
		byBucket = append(byBucket, c.Call)
	}
	s.ask(at.Deadline(), verbTake, items, byBucket)
	for _, c := range rest {
		call := items[c.First:c.Last]
		switch x := &call[c.k]; {
		case x.Source != limit.SourceStore:
		case x.Allowed:
			if c.part < 0 {
				c.part = c.bucket.poorest()
			}
			s.wantRefill(c.bucket, c.part, x)
		case onlyDenier(call, c.k):
			if c.part = c.bucket.richest(c.part); c.part >= 0 {
				c.was = slices.Clone(call)
				denied = append(denied, c)
			}
		}
	}
	for _, c := range s.takeByParts(at, items, denied) {
		copy(items[c.First:c.Last], c.was)
	}
}

// onlyDenier reports whether item k alone denies its call.
func onlyDenier(call []limit.Item, k int) bool {
	for i := range call {
		if i != k && call[i].Enforced() && !call[i].Allowed {
			return false
		}
	}
	return true
}

// takeByParts takes what calls cost their split buckets from parts of these, and then
// the rest from their other buckets. It returns the calls for which it took nothing,
// because the part has not so much or does not answer.
func (s *Store) takeByParts(at limit.Moment, items []limit.Item, calls []splitCall) (rest []splitCall) {
	var asked, others []limit.Item
	var ones, otherCalls []limit.Call
	var granted []splitCall
	var taken []limit.Item
	for _, c := range calls {
		if c.part < 0 {
			rest = append(rest, c)
			continue
		}
		x := &items[c.First+c.k]
		ones = append(ones, limit.Call{First: len(asked), Last: len(asked) + 1})
		asked = append(asked, x.PartItem(c.part, x.Cost))
	}
	s.ask(at.Deadline(), verbTake, asked, ones)
	n := 0
	for _, c := range calls {
		if c.part < 0 {
			continue
		}
		got := &asked[n]
		n++
		if got.Source == limit.SourceStore {
			c.bucket.parts[c.part].left.Store(got.Remaining)
		}
		if got.Source != limit.SourceStore || !got.Allowed {
			rest = append(rest, c)
			continue
		}
		if got.Remaining < c.bucket.units/4 {
			s.wantRefill(c.bucket, c.part, &items[c.First+c.k])
		}
		call := items[c.First:c.Last]
		c.other.First = len(others)
		others = append(append(others, call[:c.k]...), call[c.k+1:]...)
		if c.other.Last = len(others); c.other.Last > c.other.First {
			otherCalls = append(otherCalls, c.other)
		}
		granted, taken = append(granted, c), append(taken, *got)
	}
	s.ask(at.Deadline(), verbTake, others, otherCalls)
	for i, c := range granted {
		s.settleSplit(at, items[c.First:c.Last], c.k, others[c.other.First:c.other.Last], &taken[i])
	}
	return rest
}

// settleSplit puts together what a part granted bucket k of a call and what the call's
// other buckets said.
func (s *Store) settleSplit(at limit.Moment, call []limit.Item, k int, others []limit.Item, got *limit.Item) {
	undecided := len(others) > 0 && others[0].Source != limit.SourceStore
	refused := undecided
	for i := range others {
		refused = refused || others[i].Enforced() && !others[i].Allowed
	}
	if refused { // all or nothing
		s.Refund(at, []limit.Item{*got})
	}
	copy(call, others[:k])
	copy(call[k+1:], others[k:])
	if undecided {
		return
	}
	// What the part has is the least that is left. How long until the bucket is full
	// nobody knows: it is no longer than from empty.
	x := &call[k]
	x.Verdict = limit.Verdict{Allowed: true, Remaining: got.Remaining, Reset: x.Limit.Params.FullTime()/1000 + 1}
	x.Source = limit.SourceStore
}

// poorest returns the part with the fewest units.
func (b *splitBucket) poorest() int {
	least := 0
	for i := range b.parts {
		if b.parts[i].left.Load() < b.parts[least].left.Load() {
			least = i
		}
	}
	return least
}

// wantRefill has units drawn for a part, unless somebody does already.
func (s *Store) wantRefill(b *splitBucket, part int, x *limit.Item) {
	if b.parts[part].filling.Swap(true) {
		return
	}
	own := *x
	own.Name = slices.Clone(x.Name)
	select {
	case s.refills <- refill{own, b, part}:
	default:
		b.parts[part].filling.Store(false)
	}
}

// refillParts draws units for parts that want them, and ends the ticks of what is
// hot, until ctx ends.
func (s *Store) refillParts(ctx context.Context) {
	tick := time.NewTicker(hotTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.splits.tick()
		case r := <-s.refills:
			s.refillPart(r)
			r.bucket.parts[r.part].filling.Store(false)
		}
	}
}

// refillPart takes from the bucket what its part has not, if plenty is left there,
// and gives it to the part. What is lost on the way is lost to the bucket.
func (s *Store) refillPart(r refill) {
	left := &r.bucket.parts[r.part].left
	part, ok := s.askOne(verbPeek, r.item.PartItem(r.part, 1))
	if !ok {
		return
	}
	left.Store(part.Remaining)
	units := r.bucket.units - part.Remaining
	whole, ok := s.askOne(verbPeek, r.item)
	if !ok || units <= 0 || whole.Remaining < r.item.Limit.Params.Capacity/10 {
		return // close to the limit the bucket decides
	}
	whole.Cost = units
	if whole, ok = s.askOne(verbTake, whole); !ok || !whole.Allowed {
		return
	}
	given := []limit.Item{r.item.PartItem(r.part, units)}
	if s.ask(time.Now().Add(s.opts.IOTimeout), verbRefund, given, []limit.Call{{First: 0, Last: 1}}) == 0 {
		s.counts.refundsLost.Add(1)
		return
	}
	left.Add(units)
}

// askOne asks for one bucket, and reports whether it was decided.
func (s *Store) askOne(v verb, it limit.Item) (limit.Item, bool) {
	one := []limit.Item{it}
	one[0].Source, one[0].Wish = limit.SourceNone, 0
	s.ask(time.Now().Add(s.opts.IOTimeout), v, one, []limit.Call{{First: 0, Last: 1}})
	return one[0], one[0].Source == limit.SourceStore
}
