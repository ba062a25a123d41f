package limit

import (
	"fmt"
	"math"
	"testing"
)

// TestInTrial checks the size of a share of the tenants, that it always has the same
// tenants, and that each larger share includes them.
func TestInTrial(t *testing.T) {
	const tenants = 100_000
	for _, names := range []string{"%d", "tenant-%06d", "%x@example.org"} {
		in := map[int]int{}
		for i := range tenants {
			name, before := fmt.Sprintf(names, i), false
			for _, share := range []int{0, 1, 100, 500, 2500, 5000, TrialWhole} {
				now := InTrial(name, share)
				if before && !now {
					t.Fatalf("%s is in a smaller share and not in %d", name, share)
				}
				if before = now; now {
					in[share]++
				}
			}
		}
		for _, share := range []int{0, 1, 100, 500, 2500, 5000, TrialWhole} {
			want := float64(share) / TrialWhole * tenants
			if got := float64(in[share]); math.Abs(got-want) > 5*math.Sqrt(want) { // five standard deviations
				t.Errorf("of %s are %.0f in a share of %d, not about %.0f", names, got, share, want)
			}
		}
	}
	if !InTrial("acme", 7575) || InTrial("acme", 7574) {
		t.Error("the tenants of a share are others than in an earlier release")
	}
}

// trialSet compiles a plan of one limit, and tenants on it.
func trialSet(t *testing.T, version, id, rate string, opts CompileOptions, tenants ...string) *Set {
	t.Helper()
	opts.Version = version
	doc := &Document{Version: Text{"1", 1}, DefaultPlan: Text{"p", 1}, Plans: []PlanSpec{{Name: Text{"p", 1}, Limits: []RuleSpec{
		{ID: Text{id, 1}, By: []Text{{"tenant", 1}}, BySet: true, Rate: Text{rate, 1}},
	}}}}
	doc.Tenants = func(each func(*TenantSpec)) {
		for _, name := range tenants {
			each(&TenantSpec{Name: Text{name, 1}})
		}
	}
	set, _, err := Compile(doc, opts)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestTry checks that the tenants of a share have the limits on trial, that all others
// have those of the set, and that the ids of both have ordinals of their own.
func TestTry(t *testing.T) {
	base := trialSet(t, "old", "a", "100/s", CompileOptions{})
	next := trialSet(t, "new", "b", "5/s", CompileOptions{IDs: base.IDs}, "t0", "t1", "t2", "t3")
	set := base.Try(next, 5000)
	in := 0
	for i := range 1000 {
		tenant := fmt.Sprint("t", i)
		l := set.TenantLimits(tenant)[0]
		if want := InTrial(tenant, 5000); (l.ID == "b") != want || set.IDs[l.Ordinal] != l.ID {
			t.Fatalf("%s has %s, place %d of %v", tenant, l.ID, l.Ordinal, set.IDs)
		} else if want {
			in++
		}
		if got, want := set.Lists(tenant), InTrial(tenant, 5000) && i < 4; got != want {
			t.Errorf("%s is listed: %t, want %t", tenant, got, want)
		}
		if l := set.WithoutTrial().TenantLimits(tenant)[0]; l.ID != "a" {
			t.Fatalf("without the trial %s has %s", tenant, l.ID)
		}
	}
	if in < 400 || in > 600 {
		t.Errorf("%d of 1000 tenants are in a trial of half of them", in)
	}
	if tried, share := set.Trial(); tried != next || share != 5000 || set.LimitByID("b") == nil || base.LimitByID("b") != nil {
		t.Error("the set does not tell what it tries")
	}
	if ids := set.WithoutTrial().IDs; len(ids) != 1 {
		t.Errorf("without the trial it still knows %v", ids)
	}
	defer func() {
		if recover() == nil {
			t.Error("a set that was compiled without the ids of the other is tried")
		}
	}()
	base.Try(trialSet(t, "new", "b", "5/s", CompileOptions{}), 1)
}
