package reference

import (
	"fmt"
	"slices"
)

// recordID identifies the record of an admitted request. Each command has ids of its own,
// and so has each tenant.
type recordID struct {
	command    command
	tenant, id string
}

// record is the record of an admitted request under its id.
type record struct {
	cost     int64
	limits   []string
	decision Decision
	taken    []taken
	holder   int64
	ttl      int64
	// until is the end of the record's time, or of its outcome once it is done.
	until int64
	done  bool
}

// taken is the charge to one bucket.
type taken struct {
	key   string
	limit *limit
	units int64
	mark  mark
}

// The replies to settlements.
const (
	unknown     = 0
	done        = 1
	alreadyDone = 2
)

func newRecord(now int64, r Request, ttl, holder int64, d Decision, buckets []*asked, all []taken) *record {
	return &record{
		cost: r.Cost, limits: charges(buckets), decision: d, taken: all, holder: holder, ttl: ttl, until: now + ttl,
	}
}

// charges returns the names of the buckets that affect a decision, with the units that it
// takes from each.
func charges(buckets []*asked) []string {
	var all []string
	for _, a := range buckets {
		if !a.shadow {
			all = append(all, fmt.Sprintf("%d of %s", a.units, a.key))
		}
	}
	return all
}

// repeats reports whether a request is the recorded one, made again: it has the same id,
// the same cost and the same limits.
//
// Not documented: limits are the same if they have the same buckets, shared ones
// included, even if a rate was changed. RL.RESERVE and RL.ACQUIRE may be repeated until
// their TTL is up, and while their outcome is recorded. With other limits or another cost
// the id identifies the new request, once that is admitted, and the one before stays as
// it is until its time is up.
func (r *record) repeats(now int64, again Request, buckets []*asked) bool {
	return r != nil && now < r.until && r.cost == again.Cost && slices.Equal(r.limits, charges(buckets))
}

// Commit settles a reservation to the units actually used. It returns 1 when that is
// done, 2 when it was done before, and 0 when there is nothing to settle.
func (m *Model) Commit(now int64, tenant, id string, actual int64) int {
	return m.settle(now, recordID{reserve, tenant, id}, func(t taken) int64 {
		if t.limit.ownCost > 0 {
			return 0
		}
		return t.units - actual
	})
}

// Cancel settles a reservation to nothing: the request counts as never made. It returns
// the same values as Commit.
func (m *Model) Cancel(now int64, tenant, id string) int {
	return m.settle(now, recordID{reserve, tenant, id}, func(t taken) int64 { return t.units })
}

// settle returns the surplus to each of the tenant's own buckets, or takes the shortfall.
// Shared buckets keep the estimate.
func (m *Model) settle(now int64, id recordID, surplus func(taken) int64) int {
	r := m.records[id]
	if answer, settled := r.settled(now); settled {
		return answer
	}
	for _, t := range r.ofTenant() {
		b, ok := m.bucketOf(now, id.tenant, t).(counter)
		if !ok {
			continue
		}
		switch units := surplus(t); {
		case units > 0:
			b.giveBack(now, units, t.mark)
		case units < 0:
			b.owe(now, -units)
		}
	}
	r.finish(now)
	return done
}

// settled returns the answer for a record without anything to settle.
//
// Not documented: a request that matched no limit of its tenant is done however often it
// is settled, and without a time limit.
func (r *record) settled(now int64) (answer int, settled bool) {
	switch {
	case r == nil:
		return unknown, true
	case len(r.ofTenant()) == 0:
		return done, true
	case now >= r.until:
		return unknown, true
	case r.done:
		return alreadyDone, true
	}
	return 0, false
}

// finish marks a record as settled.
//
// Not documented: the outcome is recorded for one TTL from then on, not from the end of
// the first.
func (r *record) finish(now int64) {
	r.done, r.until = true, now+r.ttl
}

// ofTenant returns the charges to the tenant's own buckets.
func (r *record) ofTenant() []taken {
	return slices.DeleteFunc(slices.Clone(r.taken), func(t taken) bool { return !t.limit.ofTenant() })
}

// ofTenant reports whether the buckets of the limit belong to one tenant each.
func (l *limit) ofTenant() bool { return slices.Contains(l.by, "tenant") }

// bucketOf returns the bucket from which units were taken. A bucket that was reset since
// counts as untouched.
func (m *Model) bucketOf(now int64, tenant string, t taken) bucket {
	e, found := m.buckets[t.key]
	if !found {
		e = &entry{bucket: newBucket(now, t.limit.terms), limitID: t.limit.id, tenant: tenant}
		m.buckets[t.key] = e
	}
	return e.bucket
}
