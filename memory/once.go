package memory

import "github.com/limitgate/limitgate/limit"

const (
	// answersBytes bounds what a shard keeps of calls that may be made again: where more
	// come within limit.OnceTTL the oldest are forgotten. In all shards it is 20 MB.
	answersBytes = 20 << 20 / shardCount
	// answerBytes and answeredBytes are about what an answer takes beside its key, and
	// each bucket in it.
	answerBytes   = 150
	answeredBytes = 120
)

// answers are what calls were answered that may be made again.
type answers struct {
	kept  map[string]answer
	order []keptKey // the oldest first; some may be gone
	bytes int       // of those in order
}

// keptKey is the key of an answer, and about what that takes in memory.
type keptKey struct {
	key   string
	bytes int
}

// answer is what a call was answered, bucket by bucket.
type answer struct {
	until    int64 // microseconds
	answered []answered
}

// answered is what was asked of one bucket, and the verdict. What asks something else
// is no repetition.
type answered struct {
	params  limit.Params
	cost    int64
	verdict limit.Verdict
}

// repeat gives a call the answer that it was given before, and reports whether there
// is one.
func (a *answers) repeat(key []byte, items []limit.Item, now int64) bool {
	was, ok := a.kept[string(key)]
	if !ok || was.until <= now || len(was.answered) != len(items) {
		return false
	}
	for i := range items {
		if w := &was.answered[i]; w.params != items[i].Limit.Params || w.cost != items[i].Cost {
			return false
		}
	}
	for i := range items {
		items[i].Verdict, items[i].Source, items[i].Repeated = was.answered[i].verdict, limit.SourceStore, true
	}
	return true
}

// keep keeps the answer of a call.
func (a *answers) keep(key []byte, items []limit.Item, now int64) {
	name := string(key)
	was := answer{until: now + limit.OnceTTL.Microseconds(), answered: make([]answered, len(items))}
	for i := range items {
		was.answered[i] = answered{items[i].Limit.Params, items[i].Cost, items[i].Verdict}
	}
	if a.kept == nil {
		a.kept = map[string]answer{}
	}
	if _, again := a.kept[name]; !again {
		k := keptKey{name, len(name) + answerBytes + len(items)*answeredBytes}
		a.order, a.bytes = append(a.order, k), a.bytes+k.bytes
	}
	a.kept[name] = was
	for a.bytes > answersBytes || a.kept[a.order[0].key].until <= now {
		oldest := a.order[0]
		a.order, a.bytes = a.order[1:], a.bytes-oldest.bytes
		delete(a.kept, oldest.key)
	}
}

// forgetAnswers has calls decided anew whose keys match.
func (sh *shard) forgetAnswers(match func(key string) bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for key := range sh.answers.kept {
		if match(key) {
			delete(sh.answers.kept, key)
		}
	}
}
