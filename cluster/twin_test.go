package cluster

import "github.com/limitgate/limitgate/limit"

// twin decides as the scripts should: by the maths of package limit, over
// states that are never forgotten.
type twin map[string]limit.State

// decide gives the items of one call their verdicts and, if take is set,
// stores what becomes of their buckets.
func (w twin) decide(items []limit.Item, now int64, take bool) {
	type result struct {
		state     limit.State
		rewritten bool
	}
	results := make([]result, len(items))
	granted := true
	for i := range items {
		it := &items[i]
		r := &results[i]
		r.state = w[string(it.Name)]
		it.Verdict, r.rewritten, _ = limit.Decide(&it.Limit.Params, it.Bounds, &r.state, now, it.Cost)
		it.Source = limit.SourceStore
		granted = granted && (it.Allowed || !it.Enforced())
	}
	if !take {
		return
	}
	for i := range items {
		it, r := &items[i], &results[i]
		if it.Allowed && !granted {
			limit.Untake(&it.Limit.Params, &r.state, it.Cost)
		}
		if it.Allowed && granted || r.rewritten {
			w[string(it.Name)] = r.state
		}
	}
}

func (w twin) refund(items []limit.Item) {
	for i := range items {
		it := &items[i]
		w[string(it.Name)] = limit.Refund(&it.Limit.Params, w[string(it.Name)], it.Cost, it.Window)
	}
}
