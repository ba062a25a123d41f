package judge

import (
	"fmt"
	"math/big"
	"math/bits"
	"slices"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// mismatch is the first answer of a run that breaks the guarantees.
type mismatch struct {
	step int
	text string
}

// compare returns the first answer of got that violates the guarantees for this way of
// calling, given truth, or nil. Truth was decided one request at a time.
//
//   - Allowed, and every settlement, agree.
//   - A decision of source cache is a denial by a limit that denies the request; another one
//     may deny it for longer. Its retry_after is not before that limit's true wait, and at
//     most 1 ms after it, since both are rounded up from different instants. It is -1 if
//     and only if the true one of all limits is.
//   - Any other decision agrees in every field, except for tolerated differences.
//
// A limit changes for a bucket with the first check that reaches it, and a check that the
// cache answers does not reach it: after such a check of a changed token bucket the rest
// of a history is undetermined, until another check has reached the bucket.
func compare(h *history, truth, got []answer, w way) *mismatch {
	first := 0 // first step of the pipeline
	for i := range got {
		a, want := &got[i], &truth[i]
		if i-first >= w.batch || !h.steps[i].joined || !h.steps[i].kind.pipelined() || !h.steps[first].kind.pipelined() {
			first = i
		}
		switch {
		case a.err != "" || a.decided != want.decided:
			return &mismatch{i, fmt.Sprintf("got %s, want %s", a, want)}
		case !a.decided && a.outcome != want.outcome:
			if keepsNothing(h, truth, i) || h.steps[i].kind == renew && a.outcome != 1 && want.outcome != 1 {
				continue
			}
			return &mismatch{i, fmt.Sprintf("outcome %d, want %d", a.outcome, want.outcome)}
		case !a.decided || same(a, want) || sameSlots(a, want):
		case a.source == limit.SourceCache && w.cache:
			if problem := checkCached(a, want); problem != "" {
				return &mismatch{i, fmt.Sprintf("%s: got %s, want %s", problem, a, want)}
			}
			if changed(truth, got, i) {
				return nil // the store did not see this check, and has not changed the bucket yet
			}
		case !tolerated(h, truth, first, i, a) && !repeated(h, truth, got, i):
			return &mismatch{i, fmt.Sprintf("got %s, want %s", a, want)}
		}
	}
	return nil
}

// keepsNothing reports whether a step settles a request that matched no enforced limit of
// its tenant: no store has a record of it, and its id shows that.
func keepsNothing(h *history, truth []answer, step int) bool {
	of := &h.steps[step]
	for i := step - 1; i >= 0; i-- {
		o := &h.steps[i]
		if o.tenant != of.tenant || o.id != of.id || !truth[i].allowed || o.settlement().Hold != of.settlement().Hold {
			continue
		}
		for _, b := range truth[i].buckets {
			if !b.shared && b.enforced {
				return false
			}
		}
		return o.kind == reserve || o.kind == acquire
	}
	return false
}

// sameSlots reports whether both answers are the same denial by a limit of concurrency: a
// slot may be released long before the true wait is over, so a caller is asked to retry
// within a second.
func sameSlots(a, want *answer) bool {
	for _, b := range want.buckets {
		if b.id == want.id && b.params.Algorithm == bucket.AlgorithmConcurrency && want.retry > 1000 && a.retry == 1000 {
			sooner := *want
			sooner.retry = a.retry
			return same(a, &sooner)
		}
	}
	return false
}

// changed reports whether a request used a token bucket whose limit was another one when the store
// saw it last: it refills at the old rate, up to the old capacity, until the store sees it again.
func changed(truth, got []answer, step int) bool {
	for _, b := range truth[step].buckets {
		if b.params.Algorithm != bucket.AlgorithmTokenBucket {
			continue
		}
		for j := step - 1; j >= 0; j-- {
			i := slices.IndexFunc(truth[j].buckets, func(before seenBucket) bool { return before.name == b.name })
			if i < 0 || got[j].source == limit.SourceCache {
				continue
			}
			if truth[j].buckets[i].params != b.params {
				return true
			}
			break
		}
	}
	return false
}

func same(a, b *answer) bool {
	return a.allowed == b.allowed && a.limit == b.limit && a.remaining == b.remaining && a.retry == b.retry &&
		a.full == b.full && a.id == b.id && a.source == b.source
}

// checkCached returns the error in a decision of source cache, or "".
func checkCached(a, want *answer) string {
	if a.allowed || want.allowed {
		return "the cache denies what the store admits"
	}
	if (a.retry == bucket.Never) != (want.retry == bucket.Never) {
		return "the cache takes what may succeed for what never does, or the other way round"
	}
	for _, b := range want.buckets {
		switch {
		case b.id != a.id || !b.enforced || b.params.Capacity != a.limit:
		case b.wait == 0:
			return "the cache names a limit that admits"
		case a.retry < b.wait:
			return fmt.Sprintf("the cache asks back %d ms too early", b.wait-a.retry)
		case a.retry > b.wait+1:
			return fmt.Sprintf("the cache asks back %d ms too late", a.retry-b.wait)
		default:
			return ""
		}
	}
	return "the cache names a limit that the request does not meet"
}

// tolerated reports whether an answer may differ from the true one because earlier
// requests of the pipeline that begins at step first, which were denied, held units for a
// short time: in one hash slot, until another one had denied them. An admitted request
// may then see as many units less in one of their buckets, which may therefore bind it;
// and that bucket may be full again later, by the time in which those units come back.
func tolerated(h *history, truth []answer, first, i int, a *answer) bool {
	want := &truth[i]
	if !a.allowed || !want.allowed || a.source != limit.SourceStore {
		return false
	}
	for _, b := range want.buckets {
		if b.id != a.id || b.params.Capacity != a.limit {
			continue
		}
		held, until := int64(0), int64(0)
		for j := first; j < i; j++ {
			if h.steps[j].kind.pipelined() && !truth[j].allowed {
				if units := heldIn(&truth[j], b.name); units > 0 {
					held, until = held+units, max(until, h.steps[j].ttl)
				}
			}
		}
		if held == 0 || a.remaining > b.remaining || a.remaining < b.remaining-held {
			continue
		}
		latest := b.reset
		switch b.params.Algorithm {
		case bucket.AlgorithmTokenBucket:
			latest += refillMillis(b.params, held)
		case bucket.AlgorithmConcurrency:
			latest = max(latest, until)
		}
		if a.full >= b.reset && a.full <= latest && !moreLeft(a.remaining, a.limit, want.remaining, want.limit) {
			return true
		}
	}
	return false
}

// refillMillis returns how long units take to come back, in ms, rounded up.
func refillMillis(p *bucket.Params, units int64) int64 {
	micros := new(big.Int).Mul(big.NewInt(units), big.NewInt(p.Period))
	each := new(big.Int).Mul(big.NewInt(p.Count), big.NewInt(1000))
	return micros.Add(micros, each).Div(micros, each).Int64()
}

// repeated reports whether an answer repeats an earlier answer to the same ID, as the
// true one does.
func repeated(h *history, truth, got []answer, i int) bool {
	o := &h.steps[i]
	for j := i - 1; j >= 0 && o.id != ""; j-- {
		if before := &h.steps[j]; before.words() == o.words() && got[j].allowed && same(&got[i], &got[j]) && same(&truth[i], &truth[j]) {
			return true
		}
	}
	return false
}

// moreLeft reports whether left of capacity is a larger part than other of otherCapacity.
func moreLeft(left, capacity, other, otherCapacity int64) bool {
	ahi, alo := bits.Mul64(uint64(left), uint64(otherCapacity))
	bhi, blo := bits.Mul64(uint64(other), uint64(capacity))
	return ahi > bhi || ahi == bhi && alo > blo
}

// heldIn returns how many units of a bucket a denied request held for a short time.
func heldIn(a *answer, name string) int64 {
	for _, b := range a.buckets {
		if b.name == name && b.held {
			return b.cost
		}
	}
	return 0
}
