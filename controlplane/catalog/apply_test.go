package catalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// read applies the items of a table to a catalog as one reading.
func read(tb testing.TB, c *Catalog, items ...table.Item) (fresh []table.Item) {
	tb.Helper()
	fresh, _, err := c.ApplyAll(items, c.BeginReading())
	if err != nil {
		tb.Fatal(err)
	}
	return fresh
}

// pass advances the clock of a catalog.
func pass(c *Catalog, d time.Duration) {
	now := c.opts.Now().Add(d)
	c.opts.Now = func() time.Time { return now }
}

// wantSame requires that a catalog equals one that has just loaded items.
func wantSame(tb testing.TB, c *Catalog, items ...table.Item) {
	tb.Helper()
	want := loaded(tb, items...)
	if c.Digest() != want.Digest() || c.Status().Version != want.Status().Version || c.Status().Error != "" {
		tb.Errorf("digest %v and version %s, want %v and %s; %s", c.Digest(), c.Status().Version, want.Digest(), want.Status().Version, c.Status().Error)
	}
}

// TestAnotherTable: a table was deleted and created again with other limits of the same
// versions. A proxy that reads it uses these limits and has another version.
func TestAnotherTable(t *testing.T) {
	c := loaded(t, shared, free, pro, acme, item("TENANT#old", 1, `{"plan": "pro"}`))
	before, digest := c.Status().Version, c.Digest()
	others := []table.Item{
		shared, free, item("PLAN#pro", 1, `[{"id": "tenant", "by": ["tenant"], "rate": "7/s"}]`),
		item("TENANT#acme", 1, `{"plan": "free"}`), item("TENANT#globex", 1, `{"plan": "pro"}`),
	}
	read(t, c, others...)
	pass(c, missingTime)
	read(t, c, others...)
	wantPlan(t, c, "acme", "free")
	wantPlan(t, c, "old", "free")
	if got := c.Set().TenantLimits("globex")[0].Describe(); got != "7/s burst 7" {
		t.Errorf("globex has %s", got)
	}
	if c.Status().Version == before || c.Digest() == digest {
		t.Error("other limits have the same version or digest")
	}
	wantSame(t, c, others...)
}

// TestReadDuringMessages: a reading of the table confirms or reverts earlier messages.
// Later ones stay if they are newer.
func TestReadDuringMessages(t *testing.T) {
	free2, forged := item("TENANT#acme", 2, `{"plan": "free"}`), item("TENANT#acme", 99, `{"plan": "pro"}`)
	there := []table.Item{shared, free, pro, free2}
	c := loaded(t, there...)
	mark := c.BeginReading()
	c.Apply([]table.Item{forged, item("TENANT#new", 1, `{"plan": "pro"}`)})
	if _, _, err := c.ApplyAll(there, mark); err != nil {
		t.Fatal(err)
	}
	wantPlan(t, c, "acme", "pro") // both may have been written since
	wantPlan(t, c, "new", "pro")
	read(t, c, there...)
	wantPlan(t, c, "acme", "free")
	wantPlan(t, c, "new", "free")
	wantSame(t, c, there...)
	c.Apply([]table.Item{item("TENANT#acme", 3, `{"plan": "pro"}`)})
	wantPlan(t, c, "acme", "pro")
	c.Apply([]table.Item{item("TENANT#acme", 99, `{"plan": 7}`)}) // cannot be used either
	read(t, c, shared, free, pro, item("TENANT#acme", 4, `{"plan": "free"}`))
	wantPlan(t, c, "acme", "free")
	if st := c.Status(); st.Error != "" {
		t.Errorf("%+v", st)
	}
}

// TestForged: items that the table never had, cells included, are removed by the next
// reading.
func TestForged(t *testing.T) {
	there := []table.Item{shared, free, pro, acme}
	c := loaded(t, there...)
	c.Apply([]table.Item{
		item("TENANT#evil", 1, `{"plan": "pro"}`), item("PLAN#free", 9, `[]`), item("PLAN#big", 1, `[]`), item("TENANT#acme", 9, `{"plan": "big"}`),
		item("CELLS", 1, `{"cells":[{"id":"a","weight":1}]}`),
	})
	wantPlan(t, c, "acme", "big")
	read(t, c, there...)
	wantPlan(t, c, "evil", "free")
	wantPlan(t, c, "acme", "pro")
	if _, ok := c.Cells(); ok {
		t.Error("forged cells stay")
	}
	wantSame(t, c, there...)
	for _, it := range c.Items() {
		if it.Key == "TENANT#evil" || it.Key == "PLAN#big" {
			t.Errorf("%s would be in a snapshot", it.Key)
		}
	}
}

// TestForgedAndByHand: if the table has an item that was written by hand, the item
// before it stays in use, and a forged one does not.
func TestForgedAndByHand(t *testing.T) {
	c := loaded(t, shared, free, pro, acme)
	c.Apply([]table.Item{item("TENANT#acme", 9, `{"plan": "free"}`)})
	byHand := acme
	byHand.Actor = ""
	read(t, c, shared, free, pro, byHand)
	wantPlan(t, c, "acme", "pro")
	if st := c.Status(); !strings.Contains(st.Error, "TENANT#acme") {
		t.Errorf("%+v", st)
	}
}

// TestMissing: an item that was deleted by hand stays in use until the control plane
// can have restored it, and is removed then.
func TestMissing(t *testing.T) {
	there := []table.Item{shared, free, pro}
	c := loaded(t, append(there, acme)...)
	for range 3 {
		read(t, c, there...)
		wantPlan(t, c, "acme", "pro")
		if want := c.opts.Now(); c.RereadAt().Before(want) {
			t.Errorf("to be read again at %s", c.RereadAt())
		}
		pass(c, missingTime/4)
	}
	restored := item("TENANT#acme", 2, `{"plan": "pro"}`)
	read(t, c, append(there, restored)...)
	if !c.RereadAt().IsZero() {
		t.Error("a restored item is missing")
	}
	read(t, c, there...)
	pass(c, missingTime)
	read(t, c, there...)
	wantPlan(t, c, "acme", "free")
	wantSame(t, c, there...)
	if len(c.items)+len(c.active) != 6 || !c.RereadAt().IsZero() {
		t.Errorf("%d items are known and %d in use; read again at %s", len(c.items), len(c.active), c.RereadAt())
	}
}

// TestMissingPlan: a plan that is missing in the table stays in use while a tenant is
// on it, with an error in the status. It is removed when no tenant is on it.
func TestMissingPlan(t *testing.T) {
	c := loaded(t, shared, free, pro, acme)
	for range 3 {
		read(t, c, shared, free, acme)
		pass(c, missingTime)
	}
	wantPlan(t, c, "acme", "pro")
	if st := c.Status(); !strings.Contains(st.Error, "PLAN#pro") {
		t.Errorf("%+v", st)
	}
	if at := c.RereadAt(); !at.IsZero() {
		t.Errorf("to be read again at %s, and nothing would change", at)
	}
	moved := item("TENANT#acme", 2, `{"plan": "free"}`)
	c.Apply([]table.Item{moved})
	later(c)
	read(t, c, shared, free, moved)
	wantSame(t, c, shared, free, moved)
	if len(c.active) != 3 {
		t.Errorf("%d items in use", len(c.active))
	}
}

// TestPutBack: an item that is restored from an older copy is used as it is. The
// versions of an item may begin again, after a tombstone was removed by hand or the
// largest version was written.
func TestPutBack(t *testing.T) {
	for name, before := range map[string]table.Item{
		"newer": item("TENANT#acme", 7, `{"plan": "free"}`), "tombstone": item("TENANT#acme", 7, ""), "largest": item("TENANT#acme", table.MaxVersion, `{"plan": "free"}`),
	} {
		c := loaded(t, shared, free, pro, before)
		c.opts.Now = soonAfter
		if n := len(c.Apply([]table.Item{acme})); n != 0 {
			t.Errorf("%s: a message names an older version, and it is used", name)
		}
		read(t, c, shared, free, pro, acme)
		wantPlan(t, c, "acme", "pro")
		wantSame(t, c, shared, free, pro, acme)
		next := item("TENANT#acme", 2, `{"plan": "free"}`)
		c.Apply([]table.Item{next})
		wantPlan(t, c, "acme", "free")
	}
}

// TestConfirm: an item that was read by itself is as authoritative as one of a whole
// table.
func TestConfirm(t *testing.T) {
	c := loaded(t, shared, free, pro)
	c.Apply([]table.Item{item("TENANT#acme", 9, `{"plan": "free"}`)})
	if n := len(c.Confirm([]table.Item{acme}, c.Turn())); n != 1 {
		t.Errorf("%d are new", n)
	}
	wantPlan(t, c, "acme", "pro")
	wantSame(t, c, shared, free, pro, acme)
}

// TestEmptyTable: reading a table without limits removes none, and is an error.
func TestEmptyTable(t *testing.T) {
	c := loaded(t, shared, free, pro, acme)
	for range 3 {
		for _, items := range [][]table.Item{nil, {item("SHARED", 2, ""), item("TENANT#acme", 2, "")}, {item("CELLS", 1, `{}`)}} {
			if _, _, err := c.ApplyAll(items, c.BeginReading()); !errors.Is(err, ErrEmpty) {
				t.Errorf("%v: %v", items, err)
			}
		}
		pass(c, missingTime)
	}
	wantPlan(t, c, "acme", "pro")
}

// TestSnapshotUntilRead: the limits of a snapshot are removed by the first reading of
// the table.
func TestSnapshotUntilRead(t *testing.T) {
	c := newCatalog()
	if err := c.LoadSnapshot([]table.Item{shared, free, pro, acme, item("TENANT#b", 8, `{"plan": "pro"}`)}); err != nil {
		t.Fatal(err)
	}
	wantPlan(t, c, "acme", "pro")
	read(t, c, shared, free, pro, item("TENANT#b", 2, `{"plan": "free"}`))
	wantPlan(t, c, "acme", "free")
	wantPlan(t, c, "b", "free")
}

// TestUnconfirmedBound: messages about more items than maxUnconfirmed are dropped, and
// the table is read.
func TestUnconfirmedBound(t *testing.T) {
	c := loaded(t, shared, free, pro)
	var flood []table.Item
	for i := range maxUnconfirmed + 100 {
		flood = append(flood, item(fmt.Sprint("TENANT#forged", i), 1, `{"plan": "pro"}`))
	}
	c.Apply(flood)
	if n := len(c.unconfirmed); n != maxUnconfirmed || c.RereadAt().IsZero() {
		t.Errorf("%d are told, read again at %s", n, c.RereadAt())
	}
	c.Apply([]table.Item{item("TENANT#forged1", 2, `{"plan": "free"}`)}) // of a known item
	wantPlan(t, c, "forged1", "free")
	read(t, c, shared, free, pro)
	wantSame(t, c, shared, free, pro)
	if len(c.items)+len(c.unconfirmed)+len(c.active) != 6 || !c.RereadAt().IsZero() {
		t.Errorf("%d items, %d told, %d good", len(c.items), len(c.unconfirmed), len(c.active))
	}
}

// TestPutRight: an item that was written by hand, and then again as before, is no
// error.
func TestPutRight(t *testing.T) {
	c := loaded(t, shared, free, pro, acme)
	byHand := acme
	byHand.Actor = ""
	if read(t, c, shared, free, pro, byHand); !strings.Contains(c.Status().Error, "TENANT#acme") {
		t.Fatalf("%+v", c.Status())
	}
	c.Apply([]table.Item{item("TENANT#b", 1, `{"plan": "pro"}`)})
	later(c)
	if st := c.Status(); !strings.Contains(st.Error, "TENANT#acme") {
		t.Errorf("it is forgotten when others change: %+v", st)
	}
	read(t, c, shared, free, pro, acme)
	if st := c.Status(); st.Error != "" {
		t.Errorf("%+v", st)
	}
	wantPlan(t, c, "acme", "pro")
}

// TestSnapshotAndByHand: if an item of the table was written by hand, that of the
// snapshot stays in use, and an equal digest reports that the item was corrected.
func TestSnapshotAndByHand(t *testing.T) {
	c := newCatalog()
	if err := c.LoadSnapshot([]table.Item{shared, free, pro, acme}); err != nil {
		t.Fatal(err)
	}
	byHand := acme
	byHand.Version, byHand.Actor = 0, ""
	read(t, c, shared, free, pro, byHand)
	wantPlan(t, c, "acme", "pro")
	if st := c.Status(); !strings.Contains(st.Error, "TENANT#acme") {
		t.Errorf("%+v", st)
	}
	c.Apply([]table.Item{acme}) // of the known version
	c.Agree(c.Digest())
	if st := c.Status(); st.Error != "" {
		t.Errorf("%+v", st)
	}
	wantPlan(t, c, "acme", "pro")
}
