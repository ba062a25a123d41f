package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane/audit"
	"github.com/limitgate/limitgate/controlplane/table"
)

// tenant returns a version of the item TENANT#a; without a body it is a tombstone.
func tenant(version int64, actor, body string) *table.Item {
	at := time.Date(2026, 1, 2, 3, 4, int(version), 0, time.UTC)
	return &table.Item{Key: "TENANT#a", Version: version, Actor: actor, At: at, Body: json.RawMessage(body), Deleted: body == ""}
}

// entriesOf returns the audit entries of the changes from each item to the next one.
func entriesOf(items ...*table.Item) (entries []audit.Entry) {
	for i := 1; i < len(items); i++ {
		if e, ok := audit.NewEntry(&table.Record{Sequence: "1", Before: items[i-1], After: items[i]}, time.Date(2026, 1, 2, 4, 0, i, 0, time.UTC)); ok {
			entries = append(entries, e)
		}
	}
	return entries
}

// TestPrintHistory: each change is one line, whatever its content.
func TestPrintHistory(t *testing.T) {
	const want = `2026-01-02T03:04:01Z  version 1  by ann          add     +burst: 2000, +plan: free
2026-01-02T03:04:02Z  version 2  by "bob\nbert"  change  burst: 2000 -> 20
2026-01-02T03:04:03Z  version 3  by ann          delete  -burst: 20, -plan: free
2026-01-02T03:04:04Z  version 4  by ann          add     +a: 1, +b: 2, +c: 3, +d: 4, and 2 more
2026-01-02T04:00:05Z  version 4  by unknown      delete  -a: 1, -b: 2, -c: 3, -d: 4, and 2 more
`
	var b strings.Builder
	printHistory(&b, entriesOf(nil,
		tenant(1, "ann", `{"plan":"free","burst":2000}`), tenant(2, "bob\nbert", `{"plan":"free","burst":20}`), tenant(3, "ann", ""),
		tenant(4, "ann", `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}`), nil))
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// TestRollbackOf: of two versions with one number, because the item was forgotten in
// between, the latest is taken; a version without an actor is not taken.
func TestRollbackOf(t *testing.T) {
	entries := entriesOf(nil, tenant(1, "ann", `"old"`), tenant(2, "ann", ""))
	entries = append(entries, entriesOf(nil, tenant(1, "bob", `"new"`), tenant(1, "cy", `"by hand"`), tenant(2, "bob", `"newer"`))...)
	now := map[string]table.Item{"TENANT#a": *tenant(2, "bob", `"newer"`)}
	for version, want := range map[int64]string{1: `"new"`, 2: `"newer"`} {
		c, err := rollbackOf(entries, now, "TENANT#a", version)
		if err != nil || string(c.After) != want || c.Before == nil || c.Before.Version != 2 {
			t.Errorf("to %d: %s from %+v, %v", version, c.After, c.Before, err)
		}
	}
	if c, err := rollbackOf(entries, now, "TENANT#a", 3); err == nil {
		t.Errorf("to a version that never was: %+v", c)
	}
}

// TestNoRollback: the error of a version that cannot be restored has the reason, and the versions that can.
func TestNoRollback(t *testing.T) {
	byHand := entriesOf(tenant(1, "ann", `"a"`), tenant(1, "ann", `"by hand"`))
	deleted := entriesOf(tenant(1, "ann", `"a"`), nil)
	many := entriesOf(nil, tenant(1, "ann", `1`))
	for v := range int64(30) {
		many = append(many, entriesOf(tenant(v+1, "ann", `1`), tenant(v+2, "ann", `2`))...)
	}
	for _, row := range []struct {
		entries []audit.Entry
		version int64
		want    string
	}{
		{byHand, 1, "the audit has of version 1 of TENANT#a only a change by hand, which the control plane reverts; there is no version to go back to: limitgate limits push writes the limits of a file"},
		{append(byHand, entriesOf(tenant(1, "ann", `"by hand"`), tenant(2, "control-plane", `"a"`))...), 1, "which the control plane reverts; the versions to go back to: 2"},
		{deleted, 1, "the audit has of version 1 of TENANT#a only that it was deleted by hand; there is no"},
		{entriesOf(nil, tenant(1, "ann", `1`), tenant(2, "ann", `2`)), 9, "no audit entry of version 9 of TENANT#a; the versions to go back to: 1, 2"},
		{many, 99, "; the latest versions to go back to: 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31"},
	} {
		if _, err := rollbackOf(row.entries, nil, "TENANT#a", row.version); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("to %d: %v; want %s", row.version, err, row.want)
		}
	}
}

// TestEntriesOfTable: an item is never restored from the entries of another table.
func TestEntriesOfTable(t *testing.T) {
	entries := entriesOf(nil, tenant(1, "ann", `"old"`), tenant(2, "ann", `"ours"`), tenant(3, "ann", `"theirs"`))
	entries[1].Table, entries[2].Table = "limits", "others"
	got := entriesOfTable(entries, "limits")
	if len(got) != 2 || got[0].Version != 1 || got[1].Version != 2 {
		t.Errorf("got %+v", got)
	}
}

// TestPrintChanges: numbers and words are printed as they are written, and a list that
// differs only in its order is reported as such.
func TestPrintChanges(t *testing.T) {
	const want = `change TENANT#a, version 1 by ann
  - {burst: 9007199254740992, plan: "null", rate: 1e3}
  + {burst: 9007199254740993, plan: "null", rate: 2000000}
change PLAN#x, version 1 by ann
  in another order
add TENANT#b
  + {plan: free}
add PLAN#unlimited
  +body: []
delete PLAN#none, version 1 by ann
  -body: []
`
	var b strings.Builder
	printChanges(&b, []table.Change{
		{Key: "TENANT#a", Before: tenant(1, "ann", `{"plan":"null","burst":9007199254740992,"rate":1e3}`), After: json.RawMessage(`{"rate":2000000,"burst":9007199254740993,"plan":"null"}`)},
		{Key: "PLAN#x", Before: tenant(1, "ann", `[{"id":"a"},{"id":"b"}]`), After: json.RawMessage(`[{"id":"b"},{"id":"a"}]`)},
		{Key: "TENANT#b", After: json.RawMessage(`{"plan":"free"}`)},
		{Key: "PLAN#unlimited", After: json.RawMessage(`[]`)},
		{Key: "PLAN#none", Before: tenant(1, "ann", `[]`)},
	}, false)
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
