package memory

import (
	"hash/maphash"

	"github.com/limitgate/limitgate/limit"
)

// Settle changes what is kept of a request, see limiter.Store.
func (s *Store) Settle(at limit.Moment, what *limit.Settlement) limit.Outcome {
	sh := &s.shards[maphash.String(s.seed, limit.TenantKey(what.Tenant))%shardCount]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := limit.Monotonic(&sh.last, at.Now)
	key := what.Key()
	was, ok := sh.holds.kept[string(key)]
	switch {
	case !ok || was.until <= now:
		return limit.OutcomeUnknown
	case was.settled:
		return limit.OutcomeAlready
	case what.Change == limit.ChangeRenew:
		return sh.renew(was, what, string(limit.Holder(key)), now)
	}
	was.settled, was.until = true, now+was.keep
	for i := range was.answered {
		sh.settle(&was.answered[i], what, limit.Holder(key), now)
	}
	return limit.OutcomeDone
}

// renew has the slots of a call last from now on.
func (sh *shard) renew(was *answer, what *limit.Settlement, holder string, now int64) limit.Outcome {
	keep := was.keep
	if what.For > 0 {
		keep = what.For.Microseconds()
	}
	for i := range was.answered {
		w := &was.answered[i]
		if w.params.Algorithm != limit.AlgorithmConcurrency || !w.verdict.Allowed {
			continue
		}
		if u := sh.units[w.name]; u == nil || !u.Renew(now, now+keep, holder) {
			return limit.OutcomeUnknown
		}
	}
	was.keep, was.until = keep, now+keep
	return limit.OutcomeDone
}

// settle changes what one bucket was charged.
func (sh *shard) settle(w *answered, what *limit.Settlement, holder []byte, now int64) {
	units := w.cost
	if !w.verdict.Allowed {
		units = 0
	}
	switch slot := w.params.Algorithm == limit.AlgorithmConcurrency; {
	case what.Change == limit.ChangeRelease && !slot, what.Change == limit.ChangeCommit && !w.follows:
		return
	case what.Change == limit.ChangeCommit && what.Units > units:
		sh.owe(w, what.Units-units, now)
		return
	case what.Change == limit.ChangeCommit:
		units -= what.Units
	}
	if units > 0 {
		sh.give([]byte(w.name), &w.params, units, w.verdict.Window, holder)
	}
}

// give gives units back to a bucket that it was charged in a window, or for a holder.
func (sh *shard) give(name []byte, p *limit.Params, units, window int64, holder []byte) {
	if p.Algorithm.OneByOne() {
		sh.giveUnits(name, units, window, holder)
	} else if at := sh.find(maphash.Bytes(sh.seed, name), name); at != none {
		state := limit.Refund(p, sh.slot(at).state, units, window)
		sh.update(at, &state, true)
	}
}

// owe takes units from a bucket that may not have them.
func (sh *shard) owe(w *answered, units, now int64) {
	name := []byte(w.name)
	if w.params.Algorithm.OneByOne() {
		u := sh.units[w.name]
		if u == nil {
			u = &unitsBucket{params: w.params}
		}
		u.Owe(&w.params, now, units)
		sh.account(w.name, u)
		return
	}
	var state limit.State
	hash := maphash.Bytes(sh.seed, name)
	at := sh.find(hash, name)
	if at != none {
		state = sh.slot(at).state
	}
	state, ok := limit.Owe(&w.params, w.bounds, state, now, units)
	switch {
	case !ok:
	case at != none:
		sh.update(at, &state, true)
	default:
		sh.insert(hash, name, w.params.Algorithm, &state)
	}
}
