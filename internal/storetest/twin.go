package storetest

import "github.com/limitgate/limitgate/limit"

// Twin decides as a store should: by the maths of package limit, one call after
// the other, over states that are never forgotten. It knows them by the names of
// their buckets.
type Twin map[string]limit.State

// Decide gives the items of one call their verdicts and, if take is set,
// stores what becomes of their buckets.
func (w Twin) Decide(items []limit.Item, now int64, take bool) {
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

// Refund gives back what Decide took for the items.
func (w Twin) Refund(items []limit.Item) {
	for i := range items {
		it := &items[i]
		w[string(it.Name)] = limit.Refund(&it.Limit.Params, w[string(it.Name)], it.Cost, it.Window)
	}
}
