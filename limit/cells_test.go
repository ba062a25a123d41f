package limit

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/limit/bucket"
)

// TestDivideByWeight checks that the parts of a limit add up to it, that none is below
// one, that each differs from the exact part by less than a unit, and that equal weights
// get equal parts.
func TestDivideByWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Int64Range(1, 50), rapid.Int64Range(1, bucket.MaxCapacity)).Draw(t, "n")
		weights := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(1, 3), rapid.Int64Range(1, MaxCellWeight)), 1, 20).Draw(t, "weights")
		parts := DivideByWeight(n, weights)
		sum, total, least, raised := int64(0), int64(0), n, false
		for i := range parts {
			sum, total, least = sum+parts[i], total+weights[i], min(least, parts[i])
		}
		if sum != max(n, int64(len(weights))) || least < 1 {
			t.Fatalf("%d by %v is %v, together %d", n, weights, parts, sum)
		}
		for i := range parts {
			quo, _ := bucket.MulDiv(n, weights[i], total)
			raised = raised || quo == 0
		}
		for i := range parts {
			quo, rem := bucket.MulDiv(n, weights[i], total)
			if up := parts[i] - quo; !raised && (up != 0 && (up != 1 || rem == 0)) {
				t.Fatalf("%d by %v is %v: part %d is not within one of %d", n, weights, parts, i, quo)
			}
			for j := range parts {
				if weights[i] == weights[j] && max(parts[i]-parts[j], parts[j]-parts[i]) > 1 {
					t.Fatalf("%d by %v is %v: equal weights differ", n, weights, parts)
				}
				if weights[i] > weights[j] && parts[i] < parts[j]-1 {
					t.Fatalf("%d by %v is %v: less for more weight", n, weights, parts)
				}
			}
		}
	})
}

// TestDivideByWeightExamples compares the parts with ones worked out by hand.
func TestDivideByWeightExamples(t *testing.T) {
	for _, c := range []struct {
		n       int64
		weights []int64
		want    []int64
	}{
		{100, []int64{1, 1, 1}, []int64{34, 33, 33}},
		{100, []int64{1, 1, 2}, []int64{25, 25, 50}},
		{10, []int64{9, 1}, []int64{9, 1}},
		{10, []int64{1000, 1, 1}, []int64{8, 1, 1}},
		{2, []int64{5, 5, 1}, []int64{1, 1, 1}}, // three cells, and each admits at least one unit
		{1, []int64{7}, []int64{1}},
	} {
		if got := DivideByWeight(c.n, c.weights); !slices.Equal(got, c.want) {
			t.Errorf("%d by %v is %v, not %v", c.n, c.weights, got, c.want)
		}
	}
}

// compileCells compiles a limit for each of some cells.
func compileCells(t *testing.T, spec RuleSpec, weights ...int64) (limits []*Limit) {
	t.Helper()
	for own := range weights {
		limits = append(limits, compileOne(t, spec, CompileOptions{Cells: &Cells{Weights: weights, Own: own}}))
	}
	return limits
}

// compileOne compiles a plan of one limit.
func compileOne(t *testing.T, spec RuleSpec, opts CompileOptions) *Limit {
	t.Helper()
	spec.ID, spec.By, spec.BySet = Text{"tenant", 1}, []Text{{"tenant", 1}}, true
	doc := &Document{Version: Text{"1", 1}, DefaultPlan: Text{"p", 1}, Plans: []PlanSpec{{Name: Text{"p", 1}, Limits: []RuleSpec{spec}}}}
	set, _, err := Compile(doc, opts)
	if err != nil {
		t.Fatal(err)
	}
	return set.TenantLimits("acme")[0]
}

// TestCompileForCells checks that rate, burst and slots are each divided, for every
// algorithm, that a cell admits the largest declared cost, and that RoundedUp is set if
// the parts add up to more than the limit.
func TestCompileForCells(t *testing.T) {
	for _, c := range []struct {
		name   string
		spec   RuleSpec
		says   string  // of a cell
		count  []int64 // of each cell
		bucket []int64
		raised bool
	}{
		{"token bucket", RuleSpec{Rate: Text{"100/s", 1}, Burst: Text{"200", 1}}, "100/s burst 200, %d of it in this cell", []int64{34, 33, 33}, []int64{67, 67, 66}, false},
		{"window", RuleSpec{Rate: Text{"600/m", 1}, Algorithm: Text{"sliding_window", 1}}, "600/m, %d of it in this cell", []int64{200, 200, 200}, []int64{200, 200, 200}, false},
		{"calendar", RuleSpec{Rate: Text{"10/month", 1}, Algorithm: Text{"fixed_window", 1}}, "10/month UTC, %d of it in this cell", []int64{4, 3, 3}, []int64{4, 3, 3}, false},
		{"slots", RuleSpec{Slots: Text{"20", 1}, Algorithm: Text{"concurrency", 1}}, "20 slots, %d of it in this cell", []int64{7, 7, 6}, []int64{7, 7, 6}, false},
		{"fewer than cells", RuleSpec{Rate: Text{"2/s", 1}}, "2/s burst 2, %d of it in this cell", []int64{1, 1, 1}, []int64{1, 1, 1}, true},
		{"a large cost", RuleSpec{Rate: Text{"100/s", 1}, MaxCost: Text{"50", 1}}, "100/s burst 100, %d of it in this cell, max_cost 50", []int64{34, 33, 33}, []int64{50, 50, 50}, true},
		{"a large cost in a window", RuleSpec{Rate: Text{"90/m", 1}, Algorithm: Text{"fixed_window", 1}, Cost: Text{"45", 1}}, "90/m, %d of it in this cell, cost 45", []int64{45, 45, 45}, []int64{45, 45, 45}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, l := range compileCells(t, c.spec, 1, 1, 1) {
				if l.Rate.Count != c.count[i] || l.Params.Capacity != c.bucket[i] || l.RoundedUp != c.raised {
					t.Errorf("cell %d has %d and a bucket of %d, raised %v", i, l.Rate.Count, l.Params.Capacity, l.RoundedUp)
				}
				if want := fmt.Sprintf(c.says, c.count[i]); l.Describe() != want {
					t.Errorf("cell %d says %q, not %q", i, l.Describe(), want)
				}
				whole := compileOne(t, c.spec, CompileOptions{})
				if l.Undivided != whole.Params || whole.Divided() {
					t.Errorf("of all cells together it is %+v, not %+v", l.Undivided, whole.Params)
				}
			}
		})
	}
}

// TestMost checks that the parts together admit no more in a time than the limit does.
func TestMost(t *testing.T) {
	const minute = 60e6
	for _, c := range []struct {
		spec RuleSpec
		want int64
	}{
		{RuleSpec{Rate: Text{"100/s", 1}, Burst: Text{"200", 1}}, 6200},
		{RuleSpec{Rate: Text{"600/m", 1}, Algorithm: Text{"sliding_window", 1}}, 600},
		{RuleSpec{Rate: Text{"5/15m", 1}, Algorithm: Text{"fixed_window", 1}}, 5},
		{RuleSpec{Rate: Text{"7/s", 1}, Algorithm: Text{"fixed_window", 1}}, 420},
		{RuleSpec{Rate: Text{"1000000/month", 1}, Algorithm: Text{"fixed_window", 1}}, 1e6},
	} {
		if got := compileOne(t, c.spec, CompileOptions{}).Params.Most(minute); got != c.want {
			t.Errorf("%s admits %d in a minute, not %d", c.spec.Rate.Value, got, c.want)
		}
	}
}
