package memory

import "github.com/limitgate/limitgate/limit"

const (
	// answersBytes bounds what a shard keeps of calls that may be made again: where more
	// come within limit.OnceTTL the oldest are forgotten. In all shards it is 20 MB.
	answersBytes = 20 << 20 / shardCount
	// holdsBytes bounds what it keeps of calls that may be settled; those that are
	// forgotten stay charged as they were. In all shards it is 64 MB.
	holdsBytes = 64 << 20 / shardCount
	// answerBytes and answeredBytes are about what an answer takes beside its key, and
	// each bucket in it beside its name.
	answerBytes   = 150
	answeredBytes = 150
)

// answers are what calls were answered that were granted.
type answers struct {
	kept  map[string]*answer
	order []keptKey // the oldest first; some may be gone
	bytes int       // of those in order
	bound int       // of bytes
}

// keptKey is the key of an answer, and about what that takes in memory.
type keptKey struct {
	key   string
	bytes int
}

// answer is what a call was answered, bucket by bucket.
type answer struct {
	until    int64 // microseconds
	keep     int64 // it is kept for so long after it was given or settled, in microseconds
	settled  bool  // of a hold
	answered []answered
}

// answered is what was asked of one bucket, and the verdict. What asks something else
// is no repetition.
type answered struct {
	params  limit.Params
	cost    int64
	verdict limit.Verdict
	// Of a hold, for what is settled later; name is the bucket's.
	name    string
	bounds  *limit.Bounds
	follows bool // the charge follows what is used
}

// of returns the answers among which that to a call is.
func (sh *shard) of(call limit.Call) *answers {
	if call.Hold != limit.HoldNone {
		return &sh.holds
	}
	return &sh.answers
}

// repeat gives a call the answer that it was given before, and reports whether there
// is one. A slot that was released is not held any more.
func (sh *shard) repeat(call limit.Call, items []limit.Item, now int64) bool {
	was, ok := sh.of(call).kept[string(call.Once)]
	if !ok || was.until <= now || len(was.answered) != len(items) || call.Hold == limit.HoldSlot && was.settled {
		return false
	}
	for i := range items {
		if w := &was.answered[i]; w.params != items[i].Limit.Params || w.cost != items[i].Cost {
			return false
		}
	}
	for i := range items {
		it := &items[i]
		it.Verdict, it.Source, it.Repeated, it.Kept = was.answered[i].verdict, limit.SourceStore, true, true
	}
	return true
}

// keep keeps the answer of a call.
func (sh *shard) keep(call limit.Call, items []limit.Item, now int64) {
	was := &answer{until: now + call.Keep.Microseconds(), keep: call.Keep.Microseconds(), answered: make([]answered, len(items))}
	bytes := len(call.Once) + answerBytes
	for i := range items {
		it := &items[i]
		was.answered[i] = answered{params: it.Limit.Params, cost: it.Cost, verdict: it.Verdict}
		bytes += answeredBytes
		if call.Hold != limit.HoldNone {
			w := &was.answered[i]
			w.name, w.bounds, w.follows = string(it.Name), it.Bounds, call.Hold == limit.HoldReservation && it.Limit.FixedCost == 0
			bytes += len(w.name)
		}
	}
	sh.of(call).add(string(call.Once), was, bytes, now)
}

// add adds an answer, and forgets what has ended or does not fit, from the oldest on.
func (a *answers) add(key string, was *answer, bytes int, now int64) {
	if a.kept == nil {
		a.kept = map[string]*answer{}
	}
	if _, again := a.kept[key]; !again {
		a.order, a.bytes = append(a.order, keptKey{key, bytes}), a.bytes+bytes
	}
	a.kept[key] = was
	for len(a.order) > 0 && (a.bytes > a.bound || a.ended(a.order[0].key, now)) {
		oldest := a.order[0]
		a.order, a.bytes = a.order[1:], a.bytes-oldest.bytes
		delete(a.kept, oldest.key)
	}
}

func (a *answers) ended(key string, now int64) bool {
	was, ok := a.kept[key]
	return !ok || was.until <= now
}

// forgetAnswers has calls decided anew whose keys match, and nothing settled of them.
func (sh *shard) forgetAnswers(match func(key string) bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, a := range []*answers{&sh.answers, &sh.holds} {
		for key := range a.kept {
			if match(key) {
				delete(a.kept, key)
			}
		}
	}
}
