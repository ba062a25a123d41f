package catalog

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// slowTable returns its items of the time when a reading began, after a delay.
type slowTable struct {
	*fakeTable
	takes atomic.Int64
}

func (s *slowTable) Scan(ctx context.Context) ([]table.Item, error) {
	items, err := s.fakeTable.Scan(ctx)
	select {
	case <-time.After(time.Duration(s.takes.Load())):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return items, err
}

// TestAgreeDuringReading: a change and an equal digest arrive while the table is read.
// The reading, which is older, does not revert the change.
func TestAgreeDuringReading(t *testing.T) {
	for _, what := range []string{"change", "tombstone"} {
		t.Run(what, func(t *testing.T) {
			c := loaded(t, shared, free, pro, acme)
			next := item("TENANT#acme", 2, `{"plan":"free"}`)
			truth := newTable(shared, free, pro, next)
			if what == "tombstone" {
				next = item("TENANT#acme", 2, "")
				next.At = c.opts.Now()
				truth = newTable(shared, free, pro, next)
			}
			mark := c.BeginReading()
			read := []table.Item{shared, free, pro, acme} // a slow reading has this already
			c.Apply([]table.Item{next})
			if !c.Agree(*truth.digest().Digest) {
				t.Fatal("the digest differs")
			}
			if _, _, err := c.ApplyAll(read, mark); err != nil {
				t.Fatal(err)
			}
			if got := c.Set().Plan("acme"); got != "free" {
				t.Errorf("acme is on %s again", got)
			}
		})
	}
}

// TestSlowReadings: a change that a message named and a digest confirmed stays,
// although a reading of the table takes longer than the interval of digests.
func TestSlowReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := &slowTable{fakeTable: newTable(shared, free, pro, acme)}
		updates := make(fakeUpdates, 100)
		c := newCatalog()
		f := NewSyncer(c, tb, updates, "", nil)
		if err := f.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = f.Run(ctx) }()
		defer func() { stop(); <-done }()
		digest := func() { m := tb.digest(); m.Every = 10; updates.send(m) }
		digest()
		time.Sleep(10 * time.Second)
		tb.takes.Store(int64(50 * time.Second))
		updates.send(table.Message{Reread: true}) // a large item elsewhere: a reading begins
		time.Sleep(2 * time.Second)
		next := item("TENANT#acme", 2, `{"plan":"free"}`)
		tb.put(next)
		updates.send(of(next))
		wrong, silent := 0, 0
		for i := range 200 {
			if i%10 == 9 {
				digest()
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if c.Set().Plan("acme") != "free" {
				wrong++
				if f.Status().Err == nil && c.Status().Error == "" {
					silent++
				}
			}
		}
		if wrong > 0 {
			t.Errorf("a change that was told and confirmed is undone for %d s, %d of them without a word", wrong, silent)
		}
	})
}

// TestFetchOvertaken: a message that arrives while a tenant is read by itself is newer.
func TestFetchOvertaken(t *testing.T) {
	c := loaded(t, shared, free, pro)
	getter := getterFunc(func() (table.Item, bool, error) {
		c.Apply([]table.Item{item("TENANT#acme", 2, `{"plan":"free"}`)}) // while the response is on its way
		return acme, true, nil
	})
	NewTenantFetcher(c, getter).fetch(t.Context(), "acme")
	if got := c.Set().Plan("acme"); got != "free" {
		t.Errorf("version 1 has replaced version 2, which was told: %s", got)
	}
}

type getterFunc func() (table.Item, bool, error)

func (g getterFunc) Get(context.Context, string) (table.Item, bool, error) { return g() }
