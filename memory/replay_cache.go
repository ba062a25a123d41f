package memory

import (
	"container/heap"
	"strconv"
	"sync/atomic"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

const (
	// replayBytes bounds the records of calls that may be replayed, and holdsBytes those
	// of calls that may be settled. When a bound is exceeded, a shard with more than its
	// part deletes the records that expire first: repeated calls are then charged again,
	// and holds stay as they were granted. Shards with less than their part delete none,
	// so that the total is at most twice the bound.
	replayBytes = 20 << 20
	holdsBytes  = 64 << 20
	// recordBytes is about the size of a record without its key, and recordItemBytes that
	// of each bucket in it without its name.
	recordBytes     = 150
	recordItemBytes = 150
)

// replayBudget counts the bytes of the records of all shards.
type replayBudget struct {
	bound int64
	bytes atomic.Int64
	// forgotten counts records that were deleted before they expired.
	forgotten atomic.Int64
}

// replayCache has the records of calls that were granted, of one shard.
type replayCache struct {
	records map[string]*recorded
	ends    endings
	bytes   int64 // of records
	budget  *replayBudget
}

// recorded is the recorded answer to a call, bucket by bucket.
type recorded struct {
	key     string
	until   int64 // microseconds
	at      int   // index in replayCache.ends
	bytes   int64
	granted int64 // when, in microseconds
	keep    int64 // how long it is kept after it was granted, renewed or settled, in microseconds
	state   holdState
	holder  string // name of the call as a holder of slots
	replays int    // how often it was replayed
	items   []recordItem
}

// holdState is the state of a hold.
type holdState uint8

const (
	holdOpen holdState = iota
	holdSettled
	holdCancelled // or released: all units that can be settled are returned
)

// repeats is for how long a settled answer is replayed, in microseconds, see
// refund_settle.lua.
const repeats = 10_000_000

// recordItem is the check of one bucket, with its verdict. A call with another check is
// not replayed.
type recordItem struct {
	params  bucket.Params
	cost    int64
	verdict bucket.Verdict
	// Of a hold, for its settlement; name is the bucket's.
	name    string
	bounds  *bucket.Bounds
	follows bool // the charge follows the real cost
}

// of returns the cache for the records of a call.
func (sh *shard) of(call limit.Call) *replayCache {
	if call.Hold != limit.HoldNone {
		return &sh.holds
	}
	return &sh.answers
}

// replay gives a call its recorded answer, and reports whether there is one. A call that
// was cancelled or released is decided anew, and after repeats so is one that was
// settled.
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

// record records the answer to a call.
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

// holder returns the name of a call among the holders of slots. The name differs for each
// time that the call is granted, see refund_settle.lua.
func holder(once []byte, now int64) string {
	return string(limit.Holder(once)) + "@" + strconv.FormatInt(now, 10)
}

// revoke withdraws an answer that was given under a key. It returns revoked = true for
// the last one: the record is deleted then, the caller must return its units, and holder
// holds its slots. It returns false if the call was settled.
func (sh *shard) revoke(key []byte, now int64) (holder string, revoked bool) {
	for _, a := range []*replayCache{&sh.answers, &sh.holds} {
		was := a.records[string(key)]
		switch {
		case was == nil:
		case was.until <= now: // expired, as if it did not exist
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

// add adds a record, and deletes records that have expired or exceed the bound.
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

// forget deletes the record under a key, if there is one.
func (a *replayCache) forget(key string) {
	if was, ok := a.records[key]; ok {
		delete(a.records, key)
		heap.Remove(&a.ends, was.at)
		a.account(-was.bytes)
	}
}

// keepUntil sets when a record expires.
func (a *replayCache) keepUntil(was *recorded, until int64) {
	was.until = until
	heap.Fix(&a.ends, was.at)
}

func (a *replayCache) account(bytes int64) {
	a.bytes += bytes
	a.budget.bytes.Add(bytes)
}

// forgetIf deletes the records whose keys match.
func (a *replayCache) forgetIf(match func(key string) bool) {
	for key := range a.records {
		if match(key) {
			a.forget(key)
		}
	}
}

// endings is a heap of records, ordered by expiry.
type endings []*recorded

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].until < e[j].until }
func (e endings) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].at, e[j].at = i, j
}

// Push implements heap.Interface.
func (e *endings) Push(x any) {
	was := x.(*recorded)
	was.at = len(*e)
	*e = append(*e, was)
}

// Pop implements heap.Interface.
func (e *endings) Pop() any {
	last := (*e)[len(*e)-1]
	(*e)[len(*e)-1] = nil
	*e = (*e)[:len(*e)-1]
	return last
}
