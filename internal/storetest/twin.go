package storetest

import (
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// Twin decides as a store should: by the maths of package limit, one call after the
// other, over buckets that are never dropped. It finds them by their names.
type Twin map[string]Bucket

// Bucket is a state or, for expiring units, their log.
type Bucket struct {
	bucket.State
	Units bucket.UnitLog
}

// Decide sets the verdicts of the items of one call and, if take is set, stores the new
// states of their buckets.
func (w Twin) Decide(items []limit.Item, now int64, take bool) {
	type result struct {
		bucket    Bucket
		rewritten bool
	}
	results := make([]result, len(items))
	granted := true
	for i := range items {
		it := &items[i]
		r := &results[i]
		r.bucket = w[string(it.Name)]
		p := &it.Limit.Params
		late := false
		if p.Algorithm.ExpiresPerUnit() {
			r.bucket.State, late = r.bucket.Units.State(p, now, it.Cost, 0)
		}
		it.Verdict, r.rewritten, _ = bucket.Decide(p, it.Bounds, &r.bucket.State, now, it.Cost)
		r.rewritten = r.rewritten || late
		it.Source = limit.SourceStore
		granted = granted && (it.Allowed || !it.Enforced())
	}
	if !take {
		return
	}
	for i := range items {
		it, r := &items[i], &results[i]
		taken := it.Allowed && granted
		if !taken && !r.rewritten {
			continue
		}
		switch {
		case it.Limit.Params.Algorithm.ExpiresPerUnit() && taken:
			r.bucket.Units.Take(&it.Limit.Params, now, it.Cost, &r.bucket.State, "")
		case it.Limit.Params.Algorithm.ExpiresPerUnit():
			r.bucket.Units.Take(&it.Limit.Params, now, 0, &r.bucket.State, "")
		case it.Allowed && !granted:
			bucket.Undo(&it.Limit.Params, &r.bucket.State, it.Cost)
		}
		w[string(it.Name)] = r.bucket
	}
}

// Refund returns at now the units that Decide took for the items.
func (w Twin) Refund(items []limit.Item, now int64) {
	for i := range items {
		it := &items[i]
		b := w[string(it.Name)]
		if it.Limit.Params.Algorithm.ExpiresPerUnit() {
			b.Units.Release(now, it.Cost, it.Window, "")
		} else {
			b.State = bucket.Refund(&it.Limit.Params, b.State, it.Cost, it.Window, now)
		}
		w[string(it.Name)] = b
	}
}
