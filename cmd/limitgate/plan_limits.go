package main

import (
	"fmt"

	"github.com/limitgate/limitgate/internal/capacity"
	"github.com/limitgate/limitgate/limit"
)

// applyLimits makes the input that of the limits of a file.
func applyLimits(in *capacity.Input, set *limit.Set) {
	from := func(value float64, unit, note string) capacity.Number {
		return capacity.Number{Value: value, Unit: unit, Origin: capacity.OriginLimits, Note: note}
	}
	in.Limits = from(float64(len(set.IDs)), "", "")
	in.Kinds = nil
	var stored capacity.Stored
	for _, k := range set.RequestKinds() {
		in.Kinds = append(in.Kinds, requestOf(&k))
		keys := set.PlanKeys(k.Plan)
		stored.Fields, stored.Single, stored.Keys = max(stored.Fields, keys.Fields), max(stored.Single, keys.Single), max(stored.Keys, keys.ByValue)
	}
	in.Stored = stored
	in.Heaviest()
	in.TopRate = from(0, "units/s", "none")
	for _, l := range set.All() {
		if l.Action != limit.ActionLimit || l.Mode == limit.ModeOff || l.Store != limit.PlacementShared || l.Lease.On || l.Params.Period <= 0 {
			continue
		}
		if rate := float64(l.Params.Count) / float64(l.Params.Period) * 1e6; rate > in.TopRate.Value {
			in.TopRate = from(rate, "units/s", l.ID)
		}
	}
}

// requestOf returns what a kind of request asks of the store.
func requestOf(k *limit.RequestKind) capacity.Request {
	name := "tenants of plan " + k.Plan
	if k.Plan == "" {
		name = "tenants without a plan"
	}
	if k.When != "" {
		name += fmt.Sprintf(", %.60s", k.When)
	}
	r := capacity.Request{Kind: name, Calls: []capacity.Call{}, Local: k.Local}
	if k.Fields+k.Keys > 0 {
		r.Calls = append(r.Calls, capacity.Call{Fields: k.Fields, Keys: k.Keys})
	}
	for range k.Elsewhere {
		r.Calls = append(r.Calls, capacity.Call{Keys: 1})
	}
	return r
}
