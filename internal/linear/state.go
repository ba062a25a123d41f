package linear

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// status is the state of a record.
type status uint8

const (
	open status = iota
	settled
	cancelled
)

// record is the store's record of a call that it granted, with which it repeats its
// answer and settles the call.
type record struct {
	id     string
	kind   Kind
	status status
	// charged is the units charged to each limit, and left the remaining units of each
	// then.
	charged [maxLimits]int64
	left    [maxLimits]span
}

// buckets are those of a tenant.
type buckets struct {
	used [maxLimits]int64 // of limits that are not Paced
	full [maxLimits]span  // of Paced limits
	// setBack means that the store's clock stepped back, and that no Paced bucket was
	// written since. Until it is written, a bucket gains nothing.
	setBack bool
	// since is the earliest time at which the last decision can have been made.
	since int64
}

// state is a possible state of a store for a tenant. It is immutable.
type state struct {
	buckets
	records []record // by id and kind
	// before is the state before the last change, and acknowledged reports whether a
	// client received an answer to that change. If no failover can lose changes, before
	// is nil.
	before       *state
	acknowledged bool
	// settledDown reports that the failover of the history is over.
	settledDown bool
}

// find returns the index of a record, and whether it exists.
func (s *state) find(id string, k Kind) (int, bool) {
	return slices.BinarySearchFunc(s.records, record{id: id, kind: k}, func(x, y record) int {
		if c := strings.Compare(x.id, y.id); c != 0 {
			return c
		}
		return int(x.kind) - int(y.kind)
	})
}

// with returns the state with other buckets, and with a record unless it is nil.
func (s *state) with(b buckets, r *record) *state {
	next := &state{buckets: b, records: s.records, settledDown: s.settledDown}
	if r == nil {
		return next
	}
	i, found := s.find(r.id, r.kind)
	next.records = slices.Clone(s.records)
	if found {
		next.records[i] = *r
	} else {
		next.records = slices.Insert(next.records, i, *r)
	}
	return next
}

// same reports whether two states are equal, and also those before them, as far as the
// budget of lost acknowledged changes reaches.
func same(x, y *state, budget int) bool {
	for ; x != y; x, y = x.before, y.before {
		if x == nil || y == nil || x.buckets != y.buckets || x.settledDown != y.settledDown || x.acknowledged != y.acknowledged || !slices.Equal(x.records, y.records) {
			return false
		}
		if x.acknowledged {
			budget--
		}
		if budget < 0 || x.before == nil && y.before == nil {
			return true
		}
	}
	return true
}

var seed = maphash.MakeSeed()

// hash is equal for states that are the same.
func (s *state) hash() uint64 {
	h := maphash.Comparable(seed, s.buckets)
	for i := range s.records {
		h = h*31 + maphash.Comparable(seed, s.records[i])
	}
	return h
}

// describe writes the state as text; times are relative to begin.
func (s *state) describe(p Plan, begin int64) string {
	var words []string
	for i := range p {
		l := &p[i]
		if l.Rule != Paced {
			words = append(words, fmt.Sprintf("%s: %d of %d taken", l.ID, s.used[i], l.Capacity))
			continue
		}
		words = append(words, fmt.Sprintf("%s: full between %s and %s", l.ID, clock(s.full[i].lo, begin), clock(s.full[i].hi, begin)))
	}
	for _, r := range s.records {
		words = append(words, fmt.Sprintf("%s ID %s %s", r.kind, r.id, [...]string{"granted", "settled", "cancelled"}[r.status]))
	}
	return strings.Join(words, "; ")
}

// clock formats a time as seconds since begin.
func clock(at, begin int64) string { return fmt.Sprintf("%.6f s", float64(at-begin)/1e6) }
