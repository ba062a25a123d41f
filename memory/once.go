package memory

import "github.com/limitgate/limitgate/limit"

// onceBound is how many answers a shard keeps at most for calls that may be made
// again: where more come within limit.OnceTTL the oldest are forgotten. At some 200
// bytes each this is 20 MB in all shards.
const onceBound = 100_000 / shardCount

// answers are what calls were answered that may be made again.
type answers struct {
	kept  map[string]answer
	order []string // their keys, the oldest first
}

// answer is what a call was answered.
type answer struct {
	until    int64 // microseconds
	asked    []question
	verdicts []limit.Verdict
}

// question is what a call asked of one bucket: another one is no repetition.
type question struct {
	params limit.Params
	cost   int64
}

// repeat gives a call the answer that it was given before, and reports whether there
// is one.
func (a *answers) repeat(key []byte, items []limit.Item, now int64) bool {
	was, ok := a.kept[string(key)]
	if !ok || was.until <= now || len(was.asked) != len(items) {
		return false
	}
	for i := range items {
		if was.asked[i] != (question{items[i].Limit.Params, items[i].Cost}) {
			return false
		}
	}
	for i := range items {
		items[i].Verdict, items[i].Source, items[i].Repeated = was.verdicts[i], limit.SourceStore, true
	}
	return true
}

// keep keeps the answer of a call.
func (a *answers) keep(key []byte, items []limit.Item, now int64) {
	for len(a.order) > 0 && (len(a.order) >= onceBound || a.kept[a.order[0]].until <= now) {
		delete(a.kept, a.order[0])
		a.order = a.order[1:]
	}
	was := answer{until: now + limit.OnceTTL.Microseconds()}
	for i := range items {
		was.asked = append(was.asked, question{items[i].Limit.Params, items[i].Cost})
		was.verdicts = append(was.verdicts, items[i].Verdict)
	}
	if a.kept == nil {
		a.kept = map[string]answer{}
	}
	if _, again := a.kept[string(key)]; !again {
		a.order = append(a.order, string(key))
	}
	a.kept[string(key)] = was
}

// forgetAnswers has everything decided anew: what was answered is of buckets that may
// be gone.
func (sh *shard) forgetAnswers() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.answers = answers{}
}
