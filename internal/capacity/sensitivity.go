package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Sensitivity is a change of the input, and the bill with it.
type Sensitivity struct {
	Change     string  `json:"change"`
	Shards     int     `json:"shards"`
	MonthlyUSD float64 `json:"monthly_usd"`
	Difference float64 `json:"difference_usd"`
}

// change is a change of an input.
type change struct {
	text  string
	apply func(in *Input)
}

// sensitivities returns the changes of an input that change the bill, the largest first.
func sensitivities(in *Input, p *Plan) []Sensitivity {
	out := []Sensitivity{}
	for _, c := range changes(in) {
		other := *in
		c.apply(&other)
		changed, err := compute(&other)
		if err != nil || len(changed.LeftOut) != len(p.LeftOut) { // a price is missing
			continue
		}
		if difference := changed.Bill.Total - p.Bill.Total; math.Abs(difference) >= 0.01 {
			out = append(out, Sensitivity{c.text, changed.Shards, changed.Bill.Total, difference})
		}
	}
	slices.SortStableFunc(out, func(a, b Sensitivity) int {
		return cmp.Compare(math.Abs(b.Difference), math.Abs(a.Difference))
	})
	return out
}

// The changes that sensitivities tries.
const (
	otherUtilisation = 0.8
	otherLocalShare  = 0.9
)

// changes returns the changes that are possible.
func changes(in *Input) []change {
	all := []change{
		{"twice the traffic", func(in *Input) { in.RPS.Value *= 2; in.PeakRPS.Value *= 2 }},
		{"one more call for each request, of one bucket", func(in *Input) {
			in.Request.Calls = append(slices.Clone(in.Request.Calls), Call{Keys: 1})
		}},
		{"no replicas", func(in *Input) { in.Replicas.Value = 0 }},
		{"no peaks above the mean", func(in *Input) { in.PeakRPS.Value = in.RPS.Value }},
	}
	if in.CallCPU.Origin == OriginPerformance {
		for _, row := range []struct {
			text string
			Number
		}{{"proxies too small to batch calls (%.3g us a call, hot-fleet)", SingleCallCPU}, {"proxies that batch 91 calls (%.3g us a call, cluster-p16)", BatchedCallCPU}} {
			all = append(all, change{fmt.Sprintf(row.text, row.Value), func(in *Input) { in.CallCPU = row.Number }})
		}
	} else {
		all = append(all, change{"twice the CPU per call", func(in *Input) {
			in.CallCPU.Value, in.FieldCPU.Value, in.KeyCPU.Value = 2*in.CallCPU.Value, 2*in.FieldCPU.Value, 2*in.KeyCPU.Value
		}})
	}
	if in.LocalShare.Value < otherLocalShare {
		all = append(all, change{"nine of ten requests decided by leases", func(in *Input) { in.LocalShare.Value = otherLocalShare }})
	}
	if in.Utilisation.Value != otherUtilisation {
		all = append(all, change{"a utilisation of 0.8", func(in *Input) { in.Utilisation.Value = otherUtilisation }})
	}
	for _, engine := range Engines {
		if engine != in.Engine.Value {
			all = append(all, change{"nodes with " + engine, func(in *Input) { in.Engine.Value = engine }})
		}
	}
	for _, edge := range Edges {
		if in.Edge.Value != EdgeNone && edge != in.Edge.Value {
			all = append(all, change{"edge " + edge, func(in *Input) { in.Edge.Value = edge }})
		}
	}
	return all
}
