package reference

import (
	"cmp"
	"slices"
	"strings"
)

// The words of the file.
const (
	tokenBucketWord   = "token_bucket"
	slidingWindowWord = "sliding_window"
	fixedWindowWord   = "fixed_window"
	slidingLogWord    = "sliding_log"
	concurrencyWord   = "concurrency"
)

// rank is the most important criterion of a limit's specificity.
type rank int

const (
	ofShared rank = iota
	ofPlan
	ofOverride
)

// limit is one limit of the file, with its defaults.
type limit struct {
	id string
	// by are the dimensions by which it counts, sorted. One that has a "|" is a chain.
	by []string
	// everyLevel is set of one that allows without by.
	everyLevel bool
	when       []condition
	group      string
	terms      terms
	mode       string // enforce, shadow or off
	// share is the part of the buckets in which it is enforced, in ten thousandths; 0 is all.
	share int
	// action is deny, allow, or empty for a limit that counts.
	action  string
	missing string // pass, deny or share
	// ownCost is the cost of every request here, 0 for the request's own cost.
	ownCost int64
	// maxCost is the largest cost that a request may have, 0 for any.
	maxCost  int64
	replaces []string
	// list is the plan of the limit, or the shared limits.
	list string
	rank rank
}

// terms are the amounts that a limit admits. A bucket keeps the terms that it follows.
type terms struct {
	algorithm string
	// capacity is the burst of a token bucket, the slots of a concurrency, and COUNT of
	// all others.
	capacity int64
	count    int64
	period   period
}

// same reports whether two limits admit the same amounts.
func (t terms) same(u terms) bool {
	return t.algorithm == u.algorithm && t.capacity == u.capacity && t.count == u.count && t.period.same(u.period)
}

// newLimit returns a limit of the file with its defaults.
func newLimit(k limitKeys) (*limit, error) {
	l := &limit{
		id:         k.ID,
		everyLevel: k.By == nil && k.Action == "allow",
		by:         slices.Sorted(slices.Values(k.By)),
		group:      k.Group,
		mode:       cmp.Or(k.Mode, "enforce"),
		action:     k.Action,
		missing:    cmp.Or(k.Missing, "pass"),
		ownCost:    k.Cost,
		replaces:   k.Replaces,
	}
	for name, pattern := range k.When {
		l.when = append(l.when, condition{name, pattern})
	}
	slices.SortFunc(l.when, func(a, b condition) int { return strings.Compare(a.dimension, b.dimension) })
	if l.action != "" {
		return l, nil
	}
	var err error
	if l.share, err = parseShare(k.Enforce); err != nil {
		return nil, err
	}
	l.terms.algorithm = cmp.Or(k.Algorithm, tokenBucketWord)
	if l.terms.algorithm == concurrencyWord {
		l.terms.capacity = k.Slots
		return l, nil
	}
	if l.ownCost == 0 {
		l.maxCost = k.MaxCost
	}
	if l.terms.count, l.terms.period, err = parseRate(k.Rate, k.Timezone); err != nil {
		return nil, err
	}
	l.terms.capacity = l.terms.count
	if l.terms.algorithm == tokenBucketWord && k.Burst > 0 {
		l.terms.capacity = k.Burst
	}
	return l, nil
}

// concurrent reports whether the limit counts slots instead of units.
func (l *limit) concurrent() bool {
	return l.terms.algorithm == concurrencyWord
}

// cost returns the cost of a request for this limit.
//
// Not documented: RL.ACQUIRE takes one unit of every other limit. A limit with a cost of
// its own takes that also from RL.ACQUIRE.
func (l *limit) cost(r Request) int64 {
	switch {
	case l.concurrent():
		return 1
	case l.ownCost > 0:
		return l.ownCost
	default:
		return r.Cost
	}
}
