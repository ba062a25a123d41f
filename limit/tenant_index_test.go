package limit

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// TestTenantIndex checks that an index lists the same tenants as a map after any changes,
// and that changes leave earlier indexes as they were.
func TestTenantIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := []*ruleset{{plan: "a"}, {plan: "b"}, nil}
		few := rapid.MapOfN(rapid.IntRange(0, 200), rapid.SampledFrom(rules), 0, 5)
		many := rapid.MapOfN(rapid.IntRange(0, 200), rapid.SampledFrom(rules), 40, 60)
		changes := rapid.SliceOfN(rapid.OneOf(few, many), 1, 8).Draw(t, "changes")
		indexes, models := []*tenantIndex{{}}, []map[string]*ruleset{{}}
		for _, numbers := range changes {
			last := len(models) - 1
			model, change := maps.Clone(models[last]), map[string]*ruleset{}
			for n, r := range numbers {
				change[fmt.Sprint(n)] = r
				if model[fmt.Sprint(n)] = r; r == nil {
					delete(model, fmt.Sprint(n))
				}
			}
			indexes, models = append(indexes, indexes[last].with(change)), append(models, model)
		}
		for i, r := range indexes {
			if got := maps.Collect(r.all()); !maps.Equal(got, models[i]) || r.len != len(models[i]) {
				t.Fatalf("after %d changes it lists %d (%d), want %d", i, len(got), r.len, len(models[i]))
			}
			for n := range 201 {
				if name := fmt.Sprint(n); r.get(name) != models[i][name] {
					t.Fatalf("after %d changes %s has %v, want %v", i, name, r.get(name), models[i][name])
				}
			}
			for before := range indexes {
				checkDiffering(t, indexes[before], r, models[before], models[i])
			}
		}
	})
}

// checkDiffering compares the tenants that differ in two indexes with those that do in their models.
func checkDiffering(t *rapid.T, before, after *tenantIndex, was, is map[string]*ruleset) {
	got, want := map[string]bool{}, map[string]bool{}
	for name := range after.differing(before) {
		got[name] = true
	}
	for _, model := range []map[string]*ruleset{was, is} {
		for name := range model {
			if was[name] != is[name] {
				want[name] = true
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("%v differ, want %v", got, want)
	}
}
