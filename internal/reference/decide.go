package reference

import (
	"math/big"
	"slices"
)

// asked is a limit that applies, and its bucket's state for a request.
type asked struct {
	*considered
	bucket bucket
	units  int64
	// before is the content before the decision.
	before *big.Rat
	// never is set if a full bucket could not admit the request.
	never bool
	fits  bool
	// wait is the true wait of a request that does not fit.
	wait int64
}

// decide makes one decision: by a limit that refuses, by a repeated request, or by all
// buckets, of which each has to admit.
func (m *Model) decide(now int64, r Request, cmd command, ttl int64) Decision {
	all := m.limits.resolve(r, cmd == acquire)
	m.last = account{now: now, request: r, command: cmd, all: all}
	m.last.decision = m.answer(now, r, ttl)
	return m.last.decision
}

func (m *Model) answer(now int64, r Request, ttl int64) Decision {
	if refused := slices.IndexFunc(m.last.all, (*considered).refuses); refused >= 0 {
		return refusal(m.last.all[refused])
	}
	buckets := m.ask(now, r, m.last.all)
	m.last.asked = buckets
	id := recordID{m.last.command, r.Tenant, r.ID}
	if before := m.records[id]; r.ID != "" && before.repeats(now, r, buckets) {
		m.last.repeated = true
		return before.decision
	}
	if m.last.command != peek {
		m.keep(r, buckets)
	}
	enforced := slices.DeleteFunc(slices.Clone(buckets), func(a *asked) bool { return a.shadow })
	if slices.ContainsFunc(enforced, func(a *asked) bool { return !a.fits }) {
		return denied(now, enforced)
	}
	m.holders++
	taken := take(now, buckets, m.holders, now+ttl)
	d := admitted(now, enforced)
	if r.ID != "" {
		m.records[id] = newRecord(now, r, ttl, m.holders, d, buckets, taken)
	}
	return d
}

// ask returns copies of the buckets of the limits that apply, as a decision may change
// nothing.
func (m *Model) ask(now int64, r Request, all []*considered) []*asked {
	var buckets []*asked
	for _, c := range all {
		// A shadow refuses nothing, and a limit with an action has no bucket.
		if !c.applies() || c.action != "" || c.lacks != "" && c.missing == "deny" {
			continue
		}
		a := &asked{considered: c, units: c.cost(r), bucket: m.copy(now, c)}
		a.before = a.bucket.content(now)
		a.never = a.units > c.terms.capacity || c.maxCost > 0 && r.Cost > c.maxCost
		a.fits = !a.never && a.before.Cmp(whole(a.units)) >= 0
		switch {
		case a.never:
			a.wait = -1
		case !a.fits:
			a.wait = wait(a.bucket, now, a.units)
		}
		buckets = append(buckets, a)
	}
	return buckets
}

// copy returns a copy of a limit's bucket, which follows the limit as it is now.
func (m *Model) copy(now int64, c *considered) bucket {
	e, found := m.buckets[c.key]
	if !found {
		return newBucket(now, c.terms)
	}
	b := e.bucket.clone()
	if !b.follows().same(c.terms) {
		b.adopt(now, c.terms)
	}
	return b
}

// keep replaces the buckets of the model by their copies.
func (m *Model) keep(r Request, buckets []*asked) {
	for _, a := range buckets {
		e := &entry{bucket: a.bucket, limitID: a.id}
		if a.ofTenant() {
			e.tenant = r.Tenant
		}
		m.buckets[a.key] = e
	}
}

// take charges an admitted request to all buckets that admit it: the bucket of a shadow
// may not.
func take(now int64, buckets []*asked, holder, until int64) []taken {
	var all []taken
	for _, a := range buckets {
		if !a.fits {
			continue
		}
		t := taken{key: a.key, limit: a.limit, units: a.units}
		switch b := a.bucket.(type) {
		case *slots:
			b.held[holder] = until
		case counter:
			t.mark = b.take(now, a.units)
		}
		all = append(all, t)
	}
	return all
}
