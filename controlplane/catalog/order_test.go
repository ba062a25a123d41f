package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/controlplane/table"
)

// The bodies of items in random histories: valid ones, and ones that can never be used.
var (
	bodies = map[string][]string{
		"SHARED": {`{"version": 1}`, `{"version": 1, "default_plan": "p0"}`, `{"version": 1, "shared": [{"id": "ip", "by": ["ip"], "rate": "1/s"}]}`},
		"PLAN": {
			`[{"id": "a", "by": ["tenant"], "rate": "1/s"}]`, `[{"id": "a", "by": ["tenant"], "rate": "2/s"}, {"id": "b", "by": ["tenant", "op"], "rate": "2/s"}]`,
			`[{"id": "a", "by": ["tenant"], "rate": "3/s"}, {"id": "own", "by": ["tenant"], "when": {"tenant": "t0"}, "rate": "9/s"}]`,
		},
		"TENANT": {`{"plan": "p0"}`, `{"plan": "p1"}`, `{"plan": "p2", "overrides": {"a": {"rate": "7/s"}}}`, ""},
	}
	poison  = []string{`[{}]`, `7`, `{"version": 9}`, `no JSON`, `{"plan": "p0", "overrides": {"ghost": {"rate": "1/s"}}}`}
	keys    = []string{"SHARED", "PLAN#p0", "PLAN#p1", "PLAN#p2", "TENANT#t0", "TENANT#t1", "TENANT#t2", "TENANT#a#b"}
	tenants = []string{"t0", "t1", "t2", "a#b", "bad", "not listed"}
)

// history draws all versions of all items. The newest versions are valid together,
// except that TENANT#bad never is.
func history(rt *rapid.T) (all []table.Item, newest map[string]table.Item) {
	newest = map[string]table.Item{}
	for _, key := range keys {
		kind, _, _ := strings.Cut(key, "#")
		n := rapid.IntRange(1, 4).Draw(rt, "versions of "+key)
		for v := 1; v <= n; v++ {
			from := bodies[kind]
			if v < n {
				from = append(slices.Clone(from), append(poison, "")...)
			} else if kind == "PLAN" && key != "PLAN#p0" {
				from = append(slices.Clone(from), "") // is deleted in the end
			}
			it := item(key, int64(v+1), rapid.SampledFrom(from).Draw(rt, key))
			all, newest[key] = append(all, it), it
		}
	}
	if _, err := compileParts(live(newest), true); err != nil {
		rt.Skip("the end of the history is not good")
	}
	// A condition on a tenant makes a plan and a tenant need each other: they are used
	// together or not at all, and beside an invalid item they are not.
	needs := slices.ContainsFunc(slices.Collect(maps.Values(newest)), func(it table.Item) bool { return strings.Contains(string(it.Body), "own") })
	if !needs && rapid.Bool().Draw(rt, "bad") {
		it := item("TENANT#bad", 1, rapid.SampledFrom(poison).Draw(rt, "poison"))
		all, newest[it.Key] = append(all, it), it
	}
	return all, newest
}

func live(items map[string]table.Item) map[string]json.RawMessage {
	parts := map[string]json.RawMessage{}
	for key, it := range items {
		if !it.Deleted {
			parts[key] = it.Body
		}
	}
	return parts
}

// TestAnyOrder: whatever messages of a history arrive, in any order and any number of
// times, the final content of the table is in use after it was read again.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all, newest := history(rt)
		c := newCatalog()
		c.opts.Now = soonAfter
		if err := c.Load([]table.Item{item("SHARED", 1, `{"version": 1}`), item("PLAN#p0", 1, bodies["PLAN"][0])}); err != nil {
			rt.Fatal(err)
		}
		told := rapid.Permutation(append(slices.Clone(all), all...)).Draw(rt, "order")
		told = told[rapid.IntRange(0, len(told)).Draw(rt, "lost"):]
		for len(told) > 0 {
			n := rapid.IntRange(1, min(10, len(told))).Draw(rt, "batch")
			c.Apply(told[:n])
			told = told[n:]
		}
		c.Apply(slices.SortedFunc(maps.Values(newest), func(a, b table.Item) int { return strings.Compare(a.Key, b.Key) }))
		later(c)
		checkState(rt, c, newest)
	})
}

// checkState requires that the newest items are in use.
func checkState(rt *rapid.T, c *Catalog, newest map[string]table.Item) {
	good := maps.Clone(newest)
	delete(good, "TENANT#bad")
	want, err := compileParts(live(good), true)
	if err != nil {
		rt.Fatal(err)
	}
	st := c.Status()
	if a, b := account(want, tenants...), account(c.Set(), tenants...); a != b {
		rt.Fatalf("want\n%sgot\n%s%s", a, b, st.Error)
	}
	var sum table.Digest
	for _, it := range newest {
		sum.Add(&it)
	}
	if sum != c.Digest() {
		rt.Fatalf("digest %v, not %v", c.Digest(), sum)
	}
	if _, bad := newest["TENANT#bad"]; bad != strings.HasPrefix(st.Error, "TENANT#bad, version 1: ") || !bad && st.Error != "" {
		rt.Fatalf("listed: %q", st.Error)
	}
	items := c.Items()
	if len(items) != len(good) {
		rt.Fatalf("%d items, not %d", len(items), len(good))
	}
	for _, it := range items {
		if fmt.Sprint(it) != fmt.Sprint(good[it.Key]) {
			rt.Fatalf("%v, not %v", it, good[it.Key])
		}
	}
}

// TestLastGood: if messages arrive in order, each item is in use in its last valid
// version, whatever followed.
func TestLastGood(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all, good := history(rt)
		delete(good, "TENANT#bad")
		c := newCatalog()
		c.opts.Now = soonAfter
		if err := c.Load(slices.Collect(maps.Values(good))); err != nil {
			rt.Fatal(err)
		}
		before := account(c.Set(), tenants...)
		want := map[string]bool{}
		for range rapid.IntRange(1, 8).Draw(rt, "poisoned") {
			key := rapid.SampledFrom(keys).Draw(rt, "key")
			body := rapid.SampledFrom(poison[:2]).Draw(rt, "poison") // no kind of item has these
			if strings.HasPrefix(key, "PLAN") {
				body = "7"
			}
			c.Apply([]table.Item{item(key, int64(len(all)+len(want)+1), body)})
			want[key] = true
		}
		if after := account(c.Set(), tenants...); before != after {
			rt.Fatalf("before\n%safter\n%s", before, after)
		}
		for key := range want {
			if !strings.Contains(c.Status().Error, key+", version ") {
				rt.Fatalf("%s is not listed in %q", key, c.Status().Error)
			}
		}
	})
}

// TestLastGoodInAnyOrder: an item whose newest version is invalid is in use in its last
// valid one, also if that arrived after the invalid one.
func TestLastGoodInAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCatalog()
		c.opts.Now = soonAfter
		if err := c.Load([]table.Item{shared, free, pro}); err != nil {
			rt.Fatal(err)
		}
		var all []table.Item
		good := map[string]table.Item{shared.Key: shared, free.Key: free, pro.Key: pro}
		for _, key := range []string{"TENANT#t0", "TENANT#t1", "PLAN#pro"} {
			bodies := map[bool][]string{true: {`[]`, string(pro.Body)}, false: {`{"plan": "pro"}`, `{"plan": "free"}`, ""}}[key == "PLAN#pro"]
			for v := range rapid.Int64Range(1, 5).Draw(rt, "versions") {
				it := item(key, v+2, rapid.SampledFrom(append(bodies, "7", "7")).Draw(rt, key))
				all = append(all, it)
				if string(it.Body) != "7" {
					good[key] = it
				}
			}
		}
		told := rapid.Permutation(append(slices.Clone(all), all...)).Draw(rt, "order")
		for len(told) > 0 {
			n := rapid.IntRange(1, len(told)).Draw(rt, "batch")
			c.Apply(told[:n])
			told = told[n:]
		}
		later(c)
		want, err := compileParts(live(good), true)
		if err != nil {
			rt.Fatal(err)
		}
		if a, b := account(want, tenants...), account(c.Set(), tenants...); a != b {
			rt.Fatalf("want\n%sgot\n%s%s", a, b, c.Status().Error)
		}
		for _, it := range all {
			newest := c.items[it.Key]
			if bad := string(newest.Body) == "7"; bad != strings.Contains(c.Status().Error, fmt.Sprintf("%s, version %d: ", it.Key, newest.Version)) {
				rt.Fatalf("%s is bad: %v; listed: %s", it.Key, bad, c.Status().Error)
			}
		}
	})
}

// TestUnsigned: an item without a version does not replace one that waits for its plan.
// If it is in the table when a proxy starts, the snapshot's version is used.
func TestUnsigned(t *testing.T) {
	unsigned := table.Item{Key: "TENANT#acme", Body: json.RawMessage(`{}`)}
	c := loaded(t, shared, free)
	for _, it := range []table.Item{acme, unsigned, pro} {
		c.Apply([]table.Item{it})
	}
	if got := c.Set().TenantLimits("acme")[0].Describe(); got != "100/s burst 100" {
		t.Errorf("when its plan has come it has %s", got)
	}
	c = loaded(t, shared, free, pro, unsigned)
	c.Recall([]table.Item{acme})
	if got := c.Set().TenantLimits("acme")[0].Describe(); got != "100/s burst 100" {
		t.Errorf("with what a snapshot has of it it has %s", got)
	}
}
