package table

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		key, name            string
		isKey, plan, tenants bool
	}{
		{"SHARED", "SHARED", true, false, false},
		{"PLAN#free", "free", true, true, false},
		{"TENANT#a", "a", true, false, true},
		{"TENANT#a#b", "a#b", true, false, true},
		{"TENANT##", "#", true, false, true},
		{"CELLS", "CELLS", true, false, false},
		{"REVISION#7", "7", true, false, false},
		{"REVISION#", "", false, false, false},
		{"TENANT#", "", false, false, false},
		{"PLAN#", "", false, false, false},
		{"SHARED#", "", false, false, false},
		{"tenant#a", "a", false, false, false},
		{"", "", false, false, false},
	} {
		if IsKey(c.key) != c.isKey || IsPlan(c.key) != c.plan || IsTenant(c.key) != c.tenants || Name(c.key) != c.name {
			t.Errorf("%q: %v %v %v %q", c.key, IsKey(c.key), IsPlan(c.key), IsTenant(c.key), Name(c.key))
		}
	}
}

// describe describes changes for people.
func describe(changes []Change) string {
	var out []string
	for _, c := range changes {
		out = append(out, c.Kind()+" "+c.Key)
	}
	return strings.Join(out, ", ")
}

// TestDiff: plans are written before the shared item, and that before tenants;
// deletions follow in the reverse order. Bodies with the same meaning are not written.
func TestDiff(t *testing.T) {
	items := map[string]Item{}
	for _, it := range []Item{
		{Key: "SHARED", Body: json.RawMessage(`{"version":1}`), Version: 4},
		{Key: "PLAN#same", Body: json.RawMessage(`[{"id":"a","rate":"1/s<"}]`), Version: 1},
		{Key: "PLAN#old", Body: json.RawMessage(`[]`), Version: 2},
		{Key: "CELLS", Body: json.RawMessage(`{"cells":[]}`), Version: 1}, // no part of a file
		{Key: "PLAN#was", Version: 3, Deleted: true},
		{Key: "PLAN#again", Version: 3, Deleted: true},
		{Key: "TENANT#same", Body: json.RawMessage(`{"plan":"same","overrides":{"a":{"rate":"2/s"}}}`), Version: 1},
		{Key: "TENANT#old", Body: json.RawMessage(`{"plan":"old"}`), Version: 7},
		{Key: "TENANT#moved", Body: json.RawMessage(`{"plan":"old"}`), Version: 8},
		{Key: "TENANT#number", Body: json.RawMessage(`{"burst":9007199254740992}`), Version: 8},
		{Key: "TENANT#odd", Body: json.RawMessage(`no JSON`), Version: 8},
	} {
		items[it.Key] = it
	}
	parts := map[string]json.RawMessage{}
	for key, body := range map[string]string{
		"SHARED": `{"version":1,"default_plan":"same"}`, "PLAN#same": ` [ {"rate" : "1/s\u003c", "id":"a"} ] `, "PLAN#again": `[]`, "PLAN#new": `null`,
		"TENANT#same": `{"overrides":{"a":{"rate":"2/s"}},"plan":"same"}`, "TENANT#moved": `{"plan":"new"}`, "TENANT#new": `{"plan":"new"}`,
		"TENANT#number": `{"burst":9007199254740993}`, "TENANT#odd": `no JSON`,
	} {
		parts[key] = json.RawMessage(body)
	}
	changes := Diff(items, parts)
	const want = "add PLAN#again, add PLAN#new, change SHARED, change TENANT#moved, add TENANT#new, change TENANT#number, delete TENANT#old, delete PLAN#old"
	if got := describe(changes); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	var turns []string
	for _, turn := range Turns(changes) {
		turns = append(turns, describe(turn))
	}
	if got := strings.Join(turns, "; "); got != "add PLAN#again, add PLAN#new; change SHARED; change TENANT#moved, add TENANT#new, change TENANT#number; delete TENANT#old; delete PLAN#old" {
		t.Errorf("written in the turns %s", got)
	}
	if turns := Turns(nil); len(turns) > 0 {
		t.Errorf("nothing is written in the turns %v", turns)
	}
	for _, c := range changes {
		if c.Kind() != "add" && c.Before.Version != items[c.Key].Version || string(c.After) != string(parts[c.Key]) {
			t.Errorf("%s: %+v", c.Key, c)
		}
	}
}

// TestDiffIsEnough: after all changes of a diff are made, another diff is empty.
func TestDiffIsEnough(t *testing.T) {
	keys := []string{"SHARED", "PLAN#a", "PLAN#b", "TENANT#a", "TENANT#b", "TENANT#c"}
	bodies := []string{`{}`, `{"a": 1, "b": 2}`, `{"b":2,"a":1}`, `null`}
	rapid.Check(t, func(rt *rapid.T) {
		items, parts := map[string]Item{}, map[string]json.RawMessage{}
		for _, key := range keys {
			body := json.RawMessage(rapid.SampledFrom(bodies).Draw(rt, "body"))
			switch rapid.IntRange(0, 2).Draw(rt, "item") {
			case 0:
				items[key] = Item{Key: key, Body: body, Version: 1}
			case 1:
				items[key] = Item{Key: key, Version: 2, Deleted: true}
			}
			if rapid.Bool().Draw(rt, "part") {
				parts[key] = json.RawMessage(rapid.SampledFrom(bodies).Draw(rt, "part body"))
			}
		}
		for _, c := range Diff(items, parts) {
			items[c.Key] = Item{Key: c.Key, Body: c.After, Version: items[c.Key].Version + 1, Deleted: c.After == nil}
		}
		if left := Diff(items, parts); len(left) > 0 {
			rt.Fatalf("left: %s", describe(left))
		}
	})
}

func digest(items []Item) (d Digest) {
	for i := range items {
		d.Add(&items[i])
	}
	return d
}

// TestDigest: the digest does not depend on the order. It changes if a version differs,
// or an item is missing or added twice. It does not count tombstones. Removing an item
// undoes adding it.
func TestDigest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var items []Item
		alive := int64(0)
		for i := range rapid.IntRange(1, 20).Draw(rt, "items") {
			it := Item{Key: fmt.Sprint("TENANT#", i), Version: rapid.Int64Range(1, 1<<40).Draw(rt, "version"), Deleted: rapid.Bool().Draw(rt, "deleted")}
			items = append(items, it)
			if !it.Deleted {
				alive++
			}
		}
		want := digest(items)
		if want.Count != alive {
			rt.Fatalf("%d counted, %d live", want.Count, alive)
		}
		if got := digest(rapid.Permutation(items).Draw(rt, "order")); got != want {
			rt.Fatalf("%v in another order, not %v", got, want)
		}
		i := rapid.IntRange(0, len(items)-1).Draw(rt, "one")
		newer := slices.Clone(items)
		newer[i].Version++
		if got := digest(newer); (got == want) != items[i].Deleted {
			rt.Fatalf("%v of %v, %v of %v", want, items, got, newer)
		}
		if got := digest(slices.Delete(slices.Clone(items), i, i+1)); (got == want) != items[i].Deleted {
			rt.Fatalf("the same without %v", items[i])
		}
		removed := want
		removed.Remove(&items[i])
		removed.Add(&newer[i])
		if removed != digest(newer) {
			rt.Fatalf("%v step by step, %v anew", removed, digest(newer))
		}
	})
}

// TestMessage: a message is the same after it was sent.
func TestMessage(t *testing.T) {
	for _, text := range []string{
		`{"item":{"key":"TENANT#a","body":{"plan":"free"},"version":3,"actor":"a","at":"2026-01-01T00:00:00Z"},"at":"2026-01-01T00:00:01Z"}`,
		`{"item":{"key":"TENANT#a","version":4,"actor":"a","at":"2026-01-01T00:00:00Z","deleted":true},"at":"2026-01-01T00:00:01Z"}`,
		`{"digest":{"count":2,"sum":18446744073709551615},"at":"2026-01-01T00:00:01Z"}`,
	} {
		var m Message
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(&m); err != nil || string(got) != text {
			t.Errorf("%s, not %s: %v", got, text, err)
		}
	}
}
