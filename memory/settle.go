package memory

import (
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// Settle changes the record of a request, see limiter.Store.
func (s *Store) Settle(at limit.DecisionTime, what *limit.Settlement) (outcome limit.Outcome, changed []string) {
	sh := &s.shards[hashTag(s.seed, []byte(limit.TenantKey(what.Tenant))).shard()]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := limit.Monotonic(&sh.last, at.Now)
	key := what.Key()
	was, ok := sh.holds.records[string(key)]
	switch {
	case !ok || was.until <= now:
		return limit.OutcomeUnknown, nil
	case was.state != holdOpen:
		return limit.OutcomeAlready, nil
	case what.Change == limit.ChangeRenew:
		return sh.renew(was, what, now), nil
	}
	was.state = holdCancelled
	if what.Change == limit.ChangeCommit {
		was.state = holdSettled
	}
	sh.holds.keepUntil(was, now+was.keep)
	for i := range was.items {
		if w := &was.items[i]; sh.settle(w, what, was.holder, now) {
			changed = append(changed, w.name)
		}
	}
	return limit.OutcomeDone, changed
}

// renew extends the slots of a call from now on.
func (sh *shard) renew(was *recorded, what *limit.Settlement, now int64) limit.Outcome {
	keep := was.keep
	if what.For > 0 {
		keep = what.For.Microseconds()
	}
	var held []*unitsBucket
	for i := range was.items {
		w := &was.items[i]
		if w.params.Algorithm != bucket.AlgorithmConcurrency || !w.verdict.Allowed {
			continue
		}
		u := sh.units[w.name]
		if u == nil || !u.Holds(now, was.holder) {
			return limit.OutcomeUnknown
		}
		held = append(held, u)
	}
	for _, u := range held {
		u.Renew(now, now+keep, was.holder)
	}
	was.keep = keep
	sh.holds.keepUntil(was, now+keep)
	return limit.OutcomeDone
}

// settle changes the charge of one bucket, and reports whether the bucket changed. A
// bucket without a charge, because its limit is in shadow mode, does not change.
func (sh *shard) settle(w *recordItem, what *limit.Settlement, holder string, now int64) (changed bool) {
	units := w.cost
	switch slot := w.params.Algorithm == bucket.AlgorithmConcurrency; {
	case !w.verdict.Allowed, what.Change == limit.ChangeRelease && !slot, what.Change == limit.ChangeCommit && !w.follows:
		return false
	case what.Change == limit.ChangeCommit && what.Units > units:
		sh.owe(w, what.Units-units, now)
		return true
	case what.Change == limit.ChangeCommit:
		units -= what.Units
	}
	return units > 0 && sh.give([]byte(w.name), &w.params, units, w.verdict.Window, now, holder)
}

// give returns units at now to a bucket that was charged in a window, or for a holder,
// and reports whether the bucket took any.
func (sh *shard) give(name []byte, p *bucket.Params, units, window, now int64, holder string) (took bool) {
	if p.Algorithm.ExpiresPerUnit() {
		return sh.giveUnits(now, name, units, window, holder)
	}
	_, hash := hashName(sh.seed, name)
	at := sh.find(hash, name)
	if at == none {
		return false
	}
	was := sh.slot(at).state
	state := bucket.Refund(p, was, units, window, now)
	sh.update(at, &state, true)
	return state != was
}

// owe takes units from a bucket that may not have them.
func (sh *shard) owe(w *recordItem, units, now int64) {
	name := []byte(w.name)
	if w.params.Algorithm.ExpiresPerUnit() {
		u := sh.units[w.name]
		if u == nil {
			u = &unitsBucket{params: w.params}
		}
		if sh.budget.left() == 0 {
			u.Compact(now)
		}
		u.Overdraw(&w.params, now, units)
		sh.account(w.name, u)
		return
	}
	var state bucket.State
	_, hash := hashName(sh.seed, name)
	at := sh.find(hash, name)
	if at != none {
		state = sh.slot(at).state
	}
	state, ok := bucket.Overdraw(&w.params, w.bounds, state, now, units)
	switch {
	case !ok:
	case at != none:
		sh.update(at, &state, true)
	case sh.budget.left() > 0:
		sh.insert(hash, name, w.params.Algorithm, &state)
	}
}
