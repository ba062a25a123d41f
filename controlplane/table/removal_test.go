package table

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestRemoval: a file that removes much is detected, with the count; one that deletes a
// tenant, or a few of many, is not.
func TestRemoval(t *testing.T) {
	table := func(tenants int, plans ...string) map[string]Item {
		items := map[string]Item{
			KeyShared: {Key: KeyShared, Version: 1, Body: json.RawMessage(`{"version":1,"default_plan":"free","shared":[{"id":"ip"},{"id":"op"}]}`)},
			KeyCells:  {Key: KeyCells, Version: 1, Body: json.RawMessage(`{}`)},
		}
		for i := range tenants {
			key := fmt.Sprint(PrefixTenant, i)
			items[key] = Item{Key: key, Version: 1, Body: json.RawMessage(`{}`)}
		}
		for _, plan := range plans {
			items[PrefixPlan+plan] = Item{Key: PrefixPlan + plan, Version: 1, Body: json.RawMessage(`[{"id":"a"}]`)}
		}
		items["TENANT#gone"] = Item{Key: "TENANT#gone", Version: 2, Deleted: true}
		for key, it := range items {
			it.Actor, it.At = "ann", time.Unix(1_700_000_000, 0)
			items[key] = it
		}
		for i := range 5 { // by hand
			key := fmt.Sprint("TENANT#hand", i)
			items[key] = Item{Key: key, Body: json.RawMessage(`{}`)}
		}
		return items
	}
	for _, c := range []struct {
		what          string
		tenants, stay int
		shared        string
		plans         []string
		large         bool
		count         int
		text          string
	}{
		{"nothing", 3, 3, `{"version":1,"default_plan":"free","shared":[{"id":"op"},{"id":"ip"}]}`, []string{"free", "pro"}, false, 0, ""},
		{"one of three tenants", 3, 2, "", []string{"free", "pro"}, false, 1, "1 of 3 tenants"},
		{"two of three tenants", 3, 1, "", []string{"free", "pro"}, true, 2, "2 of 3 tenants"},
		{"a tenth of the tenants", 100, 90, "", []string{"free", "pro"}, false, 10, "10 of 100 tenants"},
		{"more than a tenth", 1500, 745, "", []string{"free", "pro"}, true, 755, "755 of 1500 tenants"},
		{"a hundred of many", 10_000, 9_900, "", []string{"free", "pro"}, false, 100, "100 of 10000 tenants"},
		{"a tenth of many", 10_000, 9_000, "", []string{"free", "pro"}, true, 1_000, "1000 of 10000 tenants"},
		{"one of two plans", 3, 3, "", []string{"free"}, false, 1, "1 of 2 plans"},
		{"all limits of a plan", 3, 3, "", []string{"free", "=pro"}, true, 1, "all limits of 1 plan"},
		{"all plans", 3, 3, "", nil, true, 2, "2 of 2 plans"},
		{"the default plan", 3, 3, `{"version":1,"shared":[{"id":"op"},{"id":"ip"}]}`, []string{"free", "pro"}, true, 1, "the default plan (free)"},
		{"a shared limit", 3, 3, `{"version":1,"default_plan":"free","shared":[{"id":"op"},{"id":"new"}]}`, []string{"free", "pro"}, true, 1, "1 shared limit (ip)"},
		{"all", 3, 0, `{"version":1}`, nil, true, 8, "the default plan (free), 2 shared limits (ip, op), 2 of 2 plans, 3 of 3 tenants"},
	} {
		items := table(c.tenants, "free", "pro")
		parts := map[string]json.RawMessage{KeyShared: json.RawMessage(c.shared)}
		if c.shared == "" {
			parts[KeyShared] = items[KeyShared].Body
		}
		for i := range c.stay {
			parts[fmt.Sprint(PrefixTenant, i)] = json.RawMessage(`{}`)
		}
		for _, plan := range c.plans {
			name, empty := strings.CutPrefix(plan, "=")
			if parts[PrefixPlan+name] = json.RawMessage(`[{"id":"a"}]`); empty {
				parts[PrefixPlan+name] = json.RawMessage(`[]`)
			}
		}
		r := RemovalOf(items, Diff(items, parts))
		if r.IsLarge() != c.large || r.Count() != c.count || r.String() != c.text {
			t.Errorf("%s: large %v, count %d, %q", c.what, r.IsLarge(), r.Count(), r.String())
		}
	}
}

// TestSame: bodies that differ only in spaces are the same, and have one hash.
func TestSame(t *testing.T) {
	a := Item{Key: "TENANT#a", Version: 1, Body: json.RawMessage("{ \"plan\":\n\"<free>\" }")}
	message, err := json.Marshal(Message{Item: &a})
	if err != nil {
		t.Fatal(err)
	}
	var received Message
	if err := json.Unmarshal(message, &received); err != nil {
		t.Fatal(err)
	}
	if !Same(&a, received.Item) || a.hash() != received.Item.hash() {
		t.Errorf("%s is not the same as %s", received.Item.Body, a.Body)
	}
	for _, other := range []Item{
		{Key: "TENANT#a", Version: 2, Body: a.Body}, {Key: "TENANT#a", Version: 1, Body: json.RawMessage(`{"plan":"pro"}`)}, {Key: "TENANT#a", Version: 1, Deleted: true},
	} {
		if Same(&a, &other) || a.hash() == other.hash() {
			t.Errorf("%+v is the same", other)
		}
	}
}
