package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/limitgate/limitgate/controlplane/table"
)

// fakeTable is a table whose readings fail with err, unless it is nil.
type fakeTable struct {
	mu    sync.Mutex
	items map[string]table.Item
	err   error
	scans int
}

func newTable(items ...table.Item) *fakeTable {
	f := &fakeTable{items: map[string]table.Item{}}
	f.put(items...)
	return f
}

func (f *fakeTable) put(items ...table.Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, it := range items {
		f.items[it.Key] = it
	}
}

func (f *fakeTable) remove(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.items, key)
}

func (f *fakeTable) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeTable) Scan(context.Context) (items []table.Item, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.scans++
	if f.err != nil {
		return nil, f.err
	}
	for _, it := range f.items {
		items = append(items, it)
	}
	return items, nil
}

func (f *fakeTable) scanned() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.scans
}

// digest returns the digest of the table, as a message.
func (f *fakeTable) digest() table.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	var d table.Digest
	for _, it := range f.items {
		d.Add(&it)
	}
	return table.Message{Digest: &d}
}

// received is the result of one Receive.
type received struct {
	messages []table.Message
	bad      int
	err      error
}

// fakeUpdates delivers one result at a time.
type fakeUpdates chan received

func (f fakeUpdates) Receive(ctx context.Context) ([]table.Message, int, error) {
	select {
	case r := <-f:
		return r.messages, r.bad, r.err
	case <-time.After(20 * time.Second): // as a queue does
		return nil, 0, nil
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

func (f fakeUpdates) send(messages ...table.Message) {
	f <- received{messages: messages}
	synctest.Wait()
}

func of(it table.Item) table.Message { return table.Message{Item: &it} }

// following runs a Syncer in a synctest bubble.
func following(t *testing.T, f *Syncer, test func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Run(ctx) }()
	synctest.Wait()
	test()
	cancel()
	synctest.Wait()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

var errDown = errors.New("the table is down")

// started returns a Syncer without a snapshot that has read a table, and its parts.
func started(t *testing.T, delay func(time.Duration)) (*fakeTable, fakeUpdates, *Catalog, *Syncer) {
	t.Helper()
	source, updates, c := newTable(shared, free, pro), make(fakeUpdates), newCatalog()
	f := NewSyncer(c, source, updates, "", delay)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return source, updates, c, f
}

// TestStartFromTable: the items of the table are used, and saved for the next start.
func TestStartFromTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	c := newCatalog()
	f := NewSyncer(c, newTable(shared, free, pro, acme), fakeUpdates(nil), path, nil)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantPlan(t, c, "acme", "pro")
	if st := f.Status(); st.Confirmed.IsZero() || st.Err != nil {
		t.Errorf("%+v", st)
	}
	if items, err := ReadSnapshot(path, "table"); err != nil || len(items) != 4 {
		t.Errorf("kept: %v, %v", items, err)
	}
}

// TestStartFromSnapshot: if the table cannot be read, or has no usable limits, the
// limits are those of the snapshot.
func TestStartFromSnapshot(t *testing.T) {
	broken := newTable(item("SHARED", 9, `{"version": 9}`), item("PLAN#free", 9, "7"), acme)
	down := newTable()
	down.fail(errDown)
	for name, from := range map[string]*fakeTable{"down": down, "broken": broken, "empty": newTable()} {
		path, content := written(t, shared, free, pro, acme)
		c := newCatalog()
		f := NewSyncer(c, from, fakeUpdates(nil), path, nil)
		if err := f.Start(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		wantPlan(t, c, "acme", "pro")
		if st := f.Status(); !st.Confirmed.IsZero() || st.Err == nil {
			t.Errorf("%s: %+v", name, st)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != string(content) {
			t.Errorf("%s: the snapshot changed: %v", name, err)
		}
	}
}

// TestStartBesideBadItem: a tenant whose newest version cannot be used has the one in
// the snapshot, at this start and the next.
func TestStartBesideBadItem(t *testing.T) {
	path, _ := written(t, shared, free, pro, acme, item("TENANT#gone", 1, `{"plan": "pro"}`))
	for range 2 {
		c := newCatalog()
		f := NewSyncer(c, newTable(shared, free, pro, item("TENANT#acme", 2, "7"), item("TENANT#b", 1, `{"plan": "pro"}`)), fakeUpdates(nil), path, nil)
		if err := f.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantPlan(t, c, "acme", "pro")
		wantPlan(t, c, "b", "pro")
		wantPlan(t, c, "gone", "free")
		if st := c.Status(); !strings.HasPrefix(st.Error, "TENANT#acme, version 2: ") || st.Rejections != 1 {
			t.Errorf("%+v", st)
		}
	}
}

// TestStartFromNothing: without limits the start fails, and the error has both reasons.
func TestStartFromNothing(t *testing.T) {
	down := newTable()
	down.fail(errDown)
	missing := filepath.Join(t.TempDir(), "not there")
	bad, _ := written(t, free)
	damaged, content := written(t, shared, free)
	if err := os.WriteFile(damaged, content[1:], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, want string
	}{{"", "down"}, {missing, "there is none yet: the first reading of the table writes it"}, {bad, "version"}, {damaged, "damaged"}} {
		err := NewSyncer(newCatalog(), down, fakeUpdates(nil), c.path, nil).Start(t.Context())
		if !errors.Is(err, errDown) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.path, err)
		}
	}
}

// TestSync: items in messages are used.
func TestSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, updates, c := newTable(shared, free, pro), make(fakeUpdates), newCatalog()
		var delays []time.Duration
		f := NewSyncer(c, source, updates, "", func(d time.Duration) { delays = append(delays, d) })
		if err := f.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		following(t, f, func() {
			it := acme
			it.At = time.Now().Add(-300 * time.Millisecond)
			updates.send(of(it))
			wantPlan(t, c, "acme", "pro")
			updates.send(of(it), of(it)) // again
			old := item("PLAN#pro", 1, `[]`)
			updates.send(of(old))
			updates <- received{bad: 3}
		})
		if !slices.Equal(delays, []time.Duration{300 * time.Millisecond}) {
			t.Errorf("delays of new items: %v", delays)
		}
		if st := f.Status(); st.Bad != 3 || st.Repairs != 0 || source.scanned() != 1 {
			t.Errorf("%+v, %d scans", st, source.scanned())
		}
	})
}

// TestRepair: the table is read again when two digests in a row differ, and not for
// one, which may have overtaken an item that it counts.
func TestRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := 0
		source, updates, c, f := started(t, func(time.Duration) { late++ })
		following(t, f, func() {
			source.put(acme)
			updates.send(source.digest())
			if source.scanned() != 1 {
				t.Error("read again after one digest")
			}
			updates.send(of(acme), source.digest()) // it was on its way
			first := f.Status().Confirmed
			lost := item("TENANT#lost", 1, `{"plan": "pro"}`)
			source.put(lost)
			time.Sleep(10 * time.Second)
			updates.send(source.digest())
			if source.scanned() != 1 {
				t.Error("the digest that was the same is forgotten")
			}
			updates.send(source.digest())
			wantPlan(t, c, "lost", "pro")
			if late != 2 {
				t.Errorf("the age of %d items is told, of one that came and one that was missed", late)
			}
			if st := f.Status(); source.scanned() != 2 || st.Repairs != 1 || !st.Confirmed.After(first) {
				t.Errorf("%d scans, %+v", source.scanned(), st)
			}
			updates.send(source.digest())
			time.Sleep(2 * readPause)
			source.put(item("TENANT#lost", 2, "")) // a deletion that is missed
			updates.send(source.digest())
			updates.send(source.digest())
			wantPlan(t, c, "lost", "free")
		})
	})
}

// TestTableDownAtStart: the snapshot is used until the table can be read. Reading is
// retried now and then, however many messages arrive.
func TestTableDownAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, _ := written(t, shared, free, pro, acme)
		source, updates, c := newTable(shared, free, pro, item("TENANT#acme", 5, `{"plan": "free"}`)), make(fakeUpdates), newCatalog()
		source.fail(errDown)
		f := NewSyncer(c, source, updates, path, nil)
		if err := f.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		following(t, f, func() {
			for v := range int64(3000) { // a minute of them
				updates.send(of(item("TENANT#b", v+1, `{"plan": "pro"}`)))
				time.Sleep(20 * time.Millisecond)
			}
			wantPlan(t, c, "b", "pro")
			if n := source.scanned(); n < 4 || n > 30 {
				t.Errorf("%d scans in a minute", n)
			}
			if st := f.Status(); !strings.Contains(fmt.Sprint(st.Err), "down") || !st.Confirmed.IsZero() {
				t.Errorf("%+v", st)
			}
			source.fail(nil)
			source.put(item("TENANT#b", 3000, `{"plan": "pro"}`))
			time.Sleep(time.Minute)
			updates.send(table.Message{Digest: &table.Digest{}})
			wantPlan(t, c, "acme", "free")
			if st := f.Status(); st.Err != nil || st.Confirmed.IsZero() {
				t.Errorf("%+v", st)
			}
		})
	})
}

// TestReceiveErrors: Receive is retried after errors, with growing pauses, and messages
// in between are used.
func TestReceiveErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, updates, c, f := started(t, nil)
		following(t, f, func() {
			begin, asked := time.Now(), 0
			for ; time.Since(begin) < time.Minute; asked++ {
				updates <- received{err: errors.New("no answer"), messages: []table.Message{of(item("TENANT#a", int64(asked)+1, `{"plan": "pro"}`))}}
			}
			if asked < 12 || asked > 40 {
				t.Errorf("asked %d times in a minute", asked)
			}
			synctest.Wait()
			wantPlan(t, c, "a", "pro")
			if st := f.Status(); fmt.Sprint(st.Err) != "no answer" {
				t.Errorf("%+v", st)
			}
			updates.send(of(acme))
			wantPlan(t, c, "acme", "pro")
			again := time.Now()
			updates <- received{err: errors.New("no answer")}
			updates.send()
			if waited := time.Since(again); waited > 200*time.Millisecond {
				t.Errorf("waited %s after the first error", waited)
			}
		})
	})
}

// TestKeepsSaving: changes are saved for the next start, soon and at the end, also if
// the first attempt failed.
func TestKeepsSaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "late")
		path := filepath.Join(folder, "snapshot")
		source, updates := newTable(shared, free, pro), make(fakeUpdates)
		f := NewSyncer(newCatalog(), source, updates, path, nil)
		if err := f.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		kept := func(n int) {
			t.Helper()
			if items, err := ReadSnapshot(path, "table"); err != nil || len(items) != n {
				t.Errorf("kept: %v, %v", items, err)
			}
		}
		following(t, f, func() {
			// Between two ticks, where the rest stays: at a tick either could come
			// first.
			time.Sleep(5 * snapshotEvery / 2)
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * snapshotEvery)
			kept(3)
			updates.send(of(acme))
			kept(3)
			time.Sleep(2 * snapshotEvery)
			kept(4)
			updates.send(of(item("TENANT#b", 1, `{"plan": "pro"}`)))
		})
		kept(5)
	})
}

// TestRunEnds: no goroutine remains, and Status and Refresh may be called all the
// while.
func TestRunEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	source, updates := newTable(shared, free, pro), make(fakeUpdates)
	f := NewSyncer(newCatalog(), source, updates, filepath.Join(t.TempDir(), "snapshot"), nil)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Run(ctx) }()
	for v := range int64(20) {
		updates <- received{messages: []table.Message{of(item(fmt.Sprint("TENANT#", v), 1, `{"plan": "pro"}`)), source.digest()}}
		if err := f.Refresh(ctx); err != nil {
			t.Error(err)
		}
		_ = f.Status()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
