package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// Spec is one limit of a test plan, each in a group of its own.
type Spec struct {
	ID, Rate, Burst, Slots, Cost, MaxCost, Algorithm, Mode, Zone, OnError, Warn string
	By                                                                          []string
}

// Compile makes a set whose default plan has the limits; those that do not count by
// tenant are shared.
func Compile(tb testing.TB, specs ...Spec) *limit.Set {
	tb.Helper()
	doc := limit.Document{File: "test", Version: text("1"), DefaultPlan: text("p"), MaxLevels: text("64")}
	plan := limit.PlanSpec{Name: text("p")}
	for i, s := range specs {
		l := limit.RuleSpec{
			Line: i + 1, ID: text(s.ID), BySet: true, Rate: text(s.Rate), Burst: text(s.Burst), Timezone: text(s.Zone),
			Slots: text(s.Slots), Cost: text(s.Cost), MaxCost: text(s.MaxCost), Algorithm: text(s.Algorithm), Mode: text(s.Mode), OnError: text(s.OnError), Warn: text(s.Warn), Group: text("g-" + s.ID),
		}
		for _, d := range s.By {
			l.By = append(l.By, text(d))
		}
		if slices.Contains(s.By, "tenant") {
			plan.Limits = append(plan.Limits, l)
		} else {
			doc.Shared = append(doc.Shared, l)
		}
	}
	doc.Plans = []limit.PlanSpec{plan}
	set, _, err := limit.Compile(&doc, limit.CompileOptions{Version: fmt.Sprint(specs)})
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

// text returns a scalar of a limits file; an empty one is absent.
func text(s string) limit.Text {
	if s == "" {
		return limit.Text{}
	}
	return limit.Text{Value: s, Line: 1}
}
