package memory

import (
	"container/heap"
	"strconv"
	"sync/atomic"

	"github.com/limitgate/limitgate/limit"
)

const (
	// replayBytes bounds what is kept of calls that may be made again, and holdsBytes of
	// calls that may be settled. Where there is more, a shard that has more than its part
	// forgets those that end first: calls are then charged again, and holds stay as they
	// were granted. With what shards keep that have less than their part it is twice as
	// much at the most.
	replayBytes = 20 << 20
	holdsBytes  = 64 << 20
	// recordBytes and answeredBytes are about what an answer takes beside its key, and
	// each bucket in it beside its name.
	recordBytes     = 150
	recordItemBytes = 150
)

// replayBudget counts what the answers of all shards take.
type replayBudget struct {
	bound int64
	bytes atomic.Int64
	// forgotten counts answers that were forgotten before their end.
	forgotten atomic.Int64
}

// replayCache are what calls were answered that were granted, of one shard.
type replayCache struct {
	records map[string]*recorded
	ends    endings
	bytes   int64 // of kept
	budget  *replayBudget
}

// recorded is what a call was answered, bucket by bucket.
type recorded struct {
	key     string
	until   int64 // microseconds
	at      int   // in answers.ends
	bytes   int64
	granted int64 // when, in microseconds
	keep    int64 // for so long after it was given or settled, in microseconds
	state   holdState
	holder  string // of its slots
	replays int    // how often it was given again
	items   []recordItem
}

// holdState is what has become of a hold.
type holdState uint8

const (
	holdOpen holdState = iota
	holdSettled
	holdCancelled // or released: all that is settled is given back
)

// repeats is for how long what was settled is repeated, see refund_settle.lua.
const repeats = 10_000_000

// recordItem is what was asked of one bucket, and the verdict. What asks something else
// is no repetition.
type recordItem struct {
	params  limit.Params
	cost    int64
	verdict limit.Verdict
	// Of a hold, for what is settled later; name is the bucket's.
	name    string
	bounds  *limit.Bounds
	follows bool // the charge follows what is used
}

// of returns the answers among which that to a call is.
func (sh *shard) of(call limit.Call) *replayCache {
	if call.Hold != limit.HoldNone {
		return &sh.holds
	}
	return &sh.answers
}

// replay gives a call the answer that it was given before, and reports whether there
// is one. What was given back is decided anew, and after a while so is what was settled.
func (sh *shard) replay(call limit.Call, items []limit.Item, now int64) bool {
	was, ok := sh.of(call).records[string(call.RecordKey)]
	if !ok || was.until <= now || len(was.items) != len(items) ||
		was.state == holdCancelled || was.state == holdSettled && was.granted+repeats <= now {
		return false
	}
	for i := range items {
		if w := &was.items[i]; w.params != items[i].Limit.Params || w.cost != items[i].Cost {
			return false
		}
	}
	was.replays++
	for i := range items {
		it := &items[i]
		it.Verdict, it.Source, it.Replayed, it.Recorded = was.items[i].verdict, limit.SourceStore, true, true
	}
	return true
}

// record keeps the answer of a call.
func (sh *shard) record(call limit.Call, items []limit.Item, now int64) {
	was := &recorded{
		key: string(call.RecordKey), until: now + call.RecordTTL.Microseconds(), granted: now, keep: call.RecordTTL.Microseconds(),
		bytes: int64(len(call.RecordKey) + recordBytes), items: make([]recordItem, len(items)),
	}
	if call.Hold == limit.HoldSlot {
		was.holder = holder(call.RecordKey, now)
	}
	for i := range items {
		it := &items[i]
		was.items[i] = recordItem{params: it.Limit.Params, cost: it.Cost, verdict: it.Verdict}
		was.bytes += recordItemBytes
		if call.Hold != limit.HoldNone {
			w := &was.items[i]
			w.name, w.bounds, w.follows = string(it.Name), it.Bounds, call.Hold == limit.HoldReservation && it.Limit.FixedCost == 0
			was.bytes += int64(len(w.name))
		}
	}
	sh.of(call).add(was, now)
}

// holder returns the name that a call has among those who hold slots: one for each time
// that it is granted, see refund_settle.lua.
func holder(once []byte, now int64) string {
	return string(limit.Holder(once)) + "@" + strconv.FormatInt(now, 10)
}

// revoke takes an answer back that was given under a key. It returns revoked = true for
// the last one: the answer is forgotten then, its units are to be given back, and holder
// holds its slots. What was settled is not given back.
func (sh *shard) revoke(key []byte, now int64) (holder string, revoked bool) {
	for _, a := range []*replayCache{&sh.answers, &sh.holds} {
		was := a.records[string(key)]
		switch {
		case was == nil:
		case was.until <= now: // as if it were forgotten
			a.forget(was.key)
		case was.replays > 0:
			was.replays--
			return "", false
		default:
			a.forget(was.key)
			return was.holder, was.state == holdOpen
		}
	}
	return "", true
}

// add adds an answer, and forgets what has ended, or does not fit.
func (a *replayCache) add(was *recorded, now int64) {
	if a.records == nil {
		a.records = map[string]*recorded{}
	}
	a.forget(was.key)
	a.records[was.key] = was
	heap.Push(&a.ends, was)
	a.account(was.bytes)
	for len(a.ends) > 0 {
		first := a.ends[0]
		if first.until > now {
			if a.budget.bytes.Load() <= a.budget.bound || a.bytes <= a.budget.bound/shardCount {
				return
			}
			a.budget.forgotten.Add(1)
		}
		a.forget(first.key)
	}
}

// forget forgets the answer under a key, if there is one.
func (a *replayCache) forget(key string) {
	if was, ok := a.records[key]; ok {
		delete(a.records, key)
		heap.Remove(&a.ends, was.at)
		a.account(-was.bytes)
	}
}

// keepUntil has an answer end at another instant.
func (a *replayCache) keepUntil(was *recorded, until int64) {
	was.until = until
	heap.Fix(&a.ends, was.at)
}

func (a *replayCache) account(bytes int64) {
	a.bytes += bytes
	a.budget.bytes.Add(bytes)
}

// forgetIf forgets the answers whose keys match.
func (a *replayCache) forgetIf(match func(key string) bool) {
	for key := range a.records {
		if match(key) {
			a.forget(key)
		}
	}
}

// endings are answers as a heap, those first that end first.
type endings []*recorded

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].until < e[j].until }
func (e endings) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].at, e[j].at = i, j
}

// Push is for package heap.
func (e *endings) Push(x any) {
	was := x.(*recorded)
	was.at = len(*e)
	*e = append(*e, was)
}

// Pop is for package heap.
func (e *endings) Pop() any {
	last := (*e)[len(*e)-1]
	(*e)[len(*e)-1] = nil
	*e = (*e)[:len(*e)-1]
	return last
}
