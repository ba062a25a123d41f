package catalog

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// TestForgedTombstones: forged tombstones of unknown items are forgotten with the next
// digest, which does not count them.
func TestForgedTombstones(t *testing.T) {
	c := loaded(t, shared, free, pro, acme)
	want := c.Digest()
	for i := range 100_000 {
		it := item(fmt.Sprint("TENANT#forged", i), 1<<52, "")
		it.At = time.Now()
		c.Apply([]table.Item{it})
		if i%5000 == 4999 { // ten seconds, and the digest of the control plane
			if c.Digest() != want {
				t.Fatal("the digest differs")
			}
			c.Agree(want)
		}
	}
	if n := len(c.items); n > maxUnconfirmed {
		t.Errorf("%d forged items are kept, %d in a snapshot", n, len(c.Items()))
	}
}

// TestNewerThanAMessage: a reading that finds a newer version of an item than a message
// named reverts nothing: the message of the newer version is on its way.
func TestNewerThanAMessage(t *testing.T) {
	c := loaded(t, shared, free, pro, item(acme.Key, 1, `{"plan":"free"}`))
	c.Apply([]table.Item{item(acme.Key, 2, `{"plan":"pro"}`)})
	mark := c.BeginReading()
	if _, _, err := c.ApplyAll([]table.Item{shared, free, pro, item(acme.Key, 3, `{"plan":"free"}`)}, mark); err != nil {
		t.Fatal(err)
	}
	c.EndReading()
	if n := c.Reverted(); n != 0 {
		t.Errorf("%d items count as taken back", n)
	}
}

// TestForgedBytes: forged items are bounded by their bytes, too.
func TestForgedBytes(t *testing.T) {
	c := loaded(t, shared, free, pro)
	before := heap()
	const n = 400
	for i := range n {
		c.Apply([]table.Item{item(fmt.Sprint("TENANT#forged", i), 1, `{"plan":"pro"`+strings.Repeat(" ", 250_000)+`}`)})
	}
	used := heap() - before
	if used > 3*maxUnconfirmedBytes || c.RereadAt().IsZero() {
		t.Errorf("%d forged tenants take %.0f MB; read again at %s", n, used/1e6, c.RereadAt())
	}
}

// observe runs a Syncer for a time and calls each once a second. It returns the number
// of seconds in which acme was not on pro, those of them without an error in the
// status, and all with one.
func observe(t *testing.T, seconds int, tb *fakeTable, each func(second int, tell func(table.Message))) (wrong, silent, said int) {
	updates := make(fakeUpdates, 1000)
	c := newCatalog()
	f := NewSyncer(c, tb, updates, "", nil)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	following(t, f, func() {
		for s := range seconds {
			each(s, func(m table.Message) { updates.send(m) })
			time.Sleep(time.Second)
			synctest.Wait()
			ok := f.Status().Err == nil && c.Status().Error == ""
			if !ok {
				said++
			}
			if c.Set().Plan("acme") != "pro" {
				wrong++
				if ok {
					silent++
				}
			}
		}
	})
	t.Logf("the table was read %d times", tb.scanned())
	return wrong, silent, said
}

// TestForgedAllTheTime: with one forged message a second beside the digests of a
// control plane, a proxy soon reports that it is stale.
func TestForgedAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable(shared, free, pro, acme)
		wrong, silent, _ := observe(t, 600, tb, func(s int, tell func(table.Message)) {
			tell(of(item("TENANT#acme", 1<<52+int64(s), `{"plan":"free"}`)))
			if s%10 == 0 {
				m := tb.digest()
				m.Every = 10
				tell(m)
			}
		})
		if silent > 120 {
			t.Errorf("a forged plan for %d s of 600, and for %d of them nothing is said", wrong, silent)
		}
	})
}

// TestTableOfOneNote: a table that was emptied, except for an item that is not a limits
// item.
func TestTableOfOneNote(t *testing.T) {
	c := loaded(t, shared, free, pro, acme)
	now := time.Now()
	c.opts.Now = func() time.Time { return now }
	note := table.Item{Key: "TENANT#note", Body: []byte(`{}`)} // without an actor
	for range 3 {
		_, _, err := c.ApplyAll([]table.Item{note}, c.BeginReading())
		t.Logf("%v; status %q", err, c.Status().Error)
		now = now.Add(31 * time.Second)
	}
	if got := account(c.Set(), "acme", "other"); !strings.Contains(got, "100/s") {
		t.Errorf("a table without limits has taken all away: %s; it says %q", got, c.Status().Error)
	}
}

// TestLogVolume: forged messages that are not limits items, and a table with other
// items in it.
func TestLogVolume(t *testing.T) {
	var log strings.Builder
	c := New(Options{Name: "table", Compile: compileParts, Log: slog.New(slog.NewTextHandler(&log, nil)), Now: time.Now})
	foreign := []table.Item{shared, free, pro, acme}
	for i := range 1000 {
		foreign = append(foreign, table.Item{Key: fmt.Sprint("USER#", i)})
	}
	if err := c.Load(foreign); err != nil {
		t.Fatal(err)
	}
	log.Reset()
	for range 3 {
		_, _, _ = c.ApplyAll(foreign, c.BeginReading())
	}
	t.Logf("3 readings of a table with 1000 other items: %d lines, rejections %d", strings.Count(log.String(), "\n"), c.Status().Rejections)
	if n := strings.Count(log.String(), "\n"); n > 100 {
		t.Errorf("each reading logs each foreign item: %d lines", n)
	}
	log.Reset()
	for i := range 1000 {
		c.Apply([]table.Item{{Key: fmt.Sprint("x", i, strings.Repeat("k", 10_000))}})
	}
	if n := log.Len(); n > 1_000_000 {
		t.Errorf("1000 forged messages without an actor log %d lines, %d bytes", strings.Count(log.String(), "\n"), n)
	}
}

// TestForgedBytesOfKnownItems: forged versions of items that the table has are bounded,
// too. Versions as large as those before are not dropped, however many there are.
func TestForgedBytesOfKnownItems(t *testing.T) {
	const n = 400
	items := []table.Item{shared, free, pro}
	large := strings.Repeat(" ", 50_000)
	for i := range n {
		body := `{"plan":"free"}`
		if i%2 == 0 {
			body = `{"plan":"free"` + large + `}`
		}
		items = append(items, item(fmt.Sprint("TENANT#", i), 1, body))
	}
	c := loaded(t, items...)
	mark := c.BeginReading()
	c.EndReading()
	for _, it := range items[3:] {
		it.Version = 2
		c.Apply([]table.Item{it})
	}
	if !c.RereadAt().IsZero() {
		t.Error("versions that are no larger than those before were dropped")
	}
	if _, _, err := c.ApplyAll(items, mark); err != nil {
		t.Fatal(err)
	}
	before := heap()
	for i := range n {
		c.Apply([]table.Item{item(fmt.Sprint("TENANT#", i), 7, `{"plan":"pro"`+strings.Repeat(" ", 250_000)+`}`)})
	}
	if used := heap() - before; used > 3*maxUnconfirmedBytes || c.RereadAt().IsZero() {
		t.Errorf("forged versions of %d tenants take %.0f MB; read again at %s", n, used/1e6, c.RereadAt())
	}
}

// TestNewerTableIsNoForgery: a table that is newer than the messages means that a
// message was lost, and reverts nothing; one that is older does.
func TestNewerTableIsNoForgery(t *testing.T) {
	for version, want := range map[int64]int64{1: 1, 2: 0, 3: 0} {
		c := loaded(t, shared, free, pro, item("TENANT#acme", 1, `{"plan":"free"}`))
		told := item("TENANT#acme", 2, `{"plan":"pro"}`)
		c.Apply([]table.Item{told})
		mark := c.BeginReading()
		now := told
		if now.Version = version; version == 1 {
			now = item("TENANT#acme", 1, `{"plan":"free"}`)
		}
		if _, _, err := c.ApplyAll([]table.Item{shared, free, pro, now}, mark); err != nil {
			t.Fatal(err)
		}
		c.EndReading()
		if got := c.Reverted(); got != want {
			t.Errorf("the table has version %d, a message named 2: %d items are taken back, not %d", version, got, want)
		}
	}
}

// TestForgedItemsAreFewLines: a reading of the table that reverts many forged items
// logs a few of them, and the number of the others.
func TestForgedItemsAreFewLines(t *testing.T) {
	c, text := loaded(t, shared, free, pro), &strings.Builder{}
	c.opts.Log = slog.New(slog.NewTextHandler(text, nil))
	for i := range 1000 {
		c.Apply([]table.Item{item(fmt.Sprint("TENANT#forged", i), 1, `{"plan":"pro"}`)})
	}
	mark := c.BeginReading()
	if _, _, err := c.ApplyAll([]table.Item{shared, free, pro}, mark); err != nil {
		t.Fatal(err)
	}
	c.EndReading()
	if n := strings.Count(text.String(), "\n"); n != maxLogged+1 || !strings.Contains(text.String(), fmt.Sprint("items=", 1000-maxLogged)) {
		t.Errorf("%d lines:\n%.1000s", n, text)
	}
}
