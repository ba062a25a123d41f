package cluster

import "github.com/limitgate/limitgate/limit"

// twin decides as the scripts should: by the maths of package limit, over
// states that are never forgotten.
type twin map[string]limit.State

// decide gives the items of one call their verdicts and, if take is set,
// stores what becomes of their buckets.
func (w twin) decide(items []limit.Item, now int64, take bool) {
	results := make([]limit.Result, len(items))
	granted := true
	for i := range items {
		it := &items[i]
		results[i], _ = limit.Decide(&it.Limit.Params, it.Bounds, w[string(it.Name)], now, it.Cost)
		it.Verdict, it.Source = results[i].Verdict, limit.SourceStore
		granted = granted && (it.Allowed || !it.Enforced())
	}
	if !take {
		return
	}
	for i := range items {
		switch r := &results[i]; {
		case granted && r.Allowed:
			w[string(items[i].Name)] = r.Next
		case r.Rewritten:
			w[string(items[i].Name)] = r.Kept
		}
	}
}

func (w twin) refund(items []limit.Item) {
	for i := range items {
		it := &items[i]
		w[string(it.Name)] = limit.Refund(&it.Limit.Params, w[string(it.Name)], it.Cost, it.Window)
	}
}
