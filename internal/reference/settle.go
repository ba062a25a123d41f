package reference

import (
	"fmt"
	"slices"
)

// recordID names the record of an admitted request. Each command has ids of its
// own, and so has each tenant.
type recordID struct {
	command    command
	tenant, id string
}

// record is what is known of an admitted request by its id.
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

// taken is what one bucket was charged with.
type taken struct {
	key   string
	limit *limit
	units int64
	mark  mark
}

// The answers to what settles a request.
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

// charges names the buckets that have a say in a decision, and the units that it
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

// repeats reports whether a request is the recorded one, made again: it has the
// same id, the same cost and the same limits.
//
// Not documented: limits are the same where they mean the same buckets, shared
// ones included, even if a rate was changed. RL.RESERVE and RL.ACQUIRE may be
// repeated until their TTL is up, and while their outcome is remembered. With
// other limits or another cost the id names the new request, once that is
// admitted, and the one before stays as it is until its time is up.
func (r *record) repeats(now int64, again Request, buckets []*asked) bool {
	return r != nil && now < r.until && r.cost == again.Cost && slices.Equal(r.limits, charges(buckets))
}

// Commit settles a reservation to what was used in fact. It returns 1 when that
// is done, 2 when it was done before, and 0 when there is nothing to settle.
func (m *Model) Commit(now int64, tenant, id string, actual int64) int {
	return m.settle(now, recordID{reserve, tenant, id}, func(t taken) int64 {
		if t.limit.ownCost > 0 {
			return 0
		}
		return t.units - actual
	})
}

// Cancel settles a reservation to nothing: the request counts as never made. It
// returns what Commit does.
func (m *Model) Cancel(now int64, tenant, id string) int {
	return m.settle(now, recordID{reserve, tenant, id}, func(t taken) int64 { return t.units })
}

// settle gives back the surplus of each of the tenant's own buckets, or takes
// what is short. Shared buckets keep the estimate.
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

// settled returns the answer for a record of which there is nothing to settle.
//
// Not documented: a request that met no limit of its tenant is done however often
// it is settled, and for as long as it is asked for.
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

// finish remembers that a record is settled.
//
// Not documented: the outcome is remembered for one TTL from then on, not from
// the end of the first.
func (r *record) finish(now int64) {
	r.done, r.until = true, now+r.ttl
}

// ofTenant returns what was taken from the tenant's own buckets.
func (r *record) ofTenant() []taken {
	return slices.DeleteFunc(slices.Clone(r.taken), func(t taken) bool { return !t.limit.ofTenant() })
}

// ofTenant reports whether the buckets of the limit belong to one tenant each.
func (l *limit) ofTenant() bool { return slices.Contains(l.by, "tenant") }

// bucketOf returns the bucket that units were taken from. A bucket that was reset
// since is as good as untouched.
func (m *Model) bucketOf(now int64, tenant string, t taken) bucket {
	e, found := m.buckets[t.key]
	if !found {
		e = &entry{bucket: newBucket(now, t.limit.terms), limitID: t.limit.id, tenant: tenant}
		m.buckets[t.key] = e
	}
	return e.bucket
}
