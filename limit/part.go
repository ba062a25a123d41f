package limit

import (
	"fmt"
	"hash/fnv"
	"strconv"
)

// A bucket of which one master gets more checks than is good for it can be split:
// parts in other slots hold units that were drawn from it ahead, and decide most of
// its checks. All units come from the bucket itself, so nothing is minted, whatever
// becomes of the parts; a part that is not there is empty.

const (
	// MinShards and MaxShards bound over how many parts a bucket is split.
	MinShards = 2
	MaxShards = 64
	// partShare is the part of a bucket that all its parts may hold together, one in
	// so many.
	partShare = 20
	// minPartUnits is how many times the largest cost a part of the capacity must be.
	minPartUnits = 100
)

// PartPrefix begins the key of every part, which no bucket's key begins with.
const PartPrefix = "lg:h:"

// AppendPartName appends the key of part i of the bucket called name. Its hash tag
// is behind the prefix, which ends at the first brace that closes.
func AppendPartName(b []byte, i int, name []byte) []byte {
	hash := fnv.New64a()
	_, _ = hash.Write(name)
	b = strconv.AppendInt(append(b, PartPrefix+"{"...), int64(i), 10)
	b = strconv.AppendUint(append(b, ';'), hash.Sum64(), 36)
	return append(append(b, '}'), name...)
}

// PartItem asks part i of the item's bucket for a cost.
func (it *Item) PartItem(i int, cost int64) Item {
	name := AppendPartName(nil, i, it.Name)
	return Item{Limit: it.Limit.Part, Name: name, KeyLen: len(name), TagLen: len(name), Cost: cost}
}

// PartUnits returns how many units a part of n may hold, or 0 where a bucket of l must
// not be split over as many, for a largest cost.
func (l *Limit) PartUnits(n, cost int64) int64 {
	if l.Part == nil || n < MinShards || l.Params.Capacity/n < minPartUnits*cost {
		return 0
	}
	return l.Params.Capacity / (partShare * n)
}

// newPart returns the limit of l's parts.
func newPart(l *Limit) *Limit {
	part := *l
	part.Mode, part.OnError = ModeEnforce, OnErrorOpen
	part.field, part.calendar, part.Part = false, nil, nil
	part.Params = Params{Algorithm: AlgorithmTokenBucket, Count: 1, Period: 1, Capacity: l.Params.Capacity}
	// By then the bucket itself is full again: what was drawn from it is not missed.
	part.PartTTL = max(1e6, l.Params.FullTime())
	return &part
}

// DescribeShards says what it means that a bucket of l is split over n parts.
func (l *Limit) DescribeShards(n int64) string {
	units := l.PartUnits(n, 1)
	return fmt.Sprintf("shared, in %d parts: they hold some %d units each, drawn from the bucket ahead, so that about %d of %d may be refused while they lie there; retry_after is an upper bound",
		n, units, units*n, l.Params.Capacity)
}

// compileShards compiles over how many parts buckets are split. Sound says that nothing
// is wrong with the limit so far.
func (c *compiler) compileShards(spec *RuleSpec, l *Limit, sound bool) {
	if l.Action != ActionLimit || l.Params.Algorithm != AlgorithmTokenBucket {
		if spec.Shards.Set() && l.Action == ActionLimit {
			c.fail(spec.Shards.Line, "shards", "only buckets of algorithm token_bucket can be split")
		}
		return
	}
	if sound && !l.Lease.On && l.Store == PlaceShared && l.Mode == ModeEnforce {
		l.Part = newPart(l)
	}
	if !spec.Shards.Set() {
		return
	}
	n, err := parseDigits(spec.Shards.Value)
	cost := max(1, l.FixedCost, l.MaxCost)
	switch {
	case err != nil || n < MinShards || n > MaxShards:
		c.fail(spec.Shards.Line, "shards", "%s is not a number of parts: write a whole number from %d to %d", quote(spec.Shards.Value), MinShards, MaxShards)
	case l.Lease.On:
		c.fail(spec.Shards.Line, "shards", "a limit with a lease needs no parts: remove one of them")
	case l.Store != PlaceShared:
		c.fail(spec.Shards.Line, "shards", "store: %s is not split: remove one of them", l.Store)
	case l.Mode != ModeEnforce:
		c.fail(spec.Shards.Line, "shards", "only enforced limits are split")
	case l.Params.Capacity > 0 && l.PartUnits(n, cost) == 0:
		c.fail(spec.Shards.Line, "shards", "%d units in %d parts are less than %d for each: at most %d parts", l.Params.Capacity, n, minPartUnits*cost, l.Params.Capacity/(minPartUnits*cost))
	default:
		l.Shards = int(n)
	}
}
