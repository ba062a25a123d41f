package controlplane

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

type fakeTable struct {
	mu    sync.Mutex // guards the others
	items []table.Item
	err   error
}

func (f *fakeTable) Scan(context.Context) ([]table.Item, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.items, f.err
}

func (f *fakeTable) set(err error, items ...table.Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items, f.err = items, err
}

func sum(items ...table.Item) (d table.Digest) {
	for _, it := range items {
		d.Add(&it)
	}
	return d
}

// TestDigests: the control plane with the lock publishes the present digest of the
// table, with the interval to the next one. It does not count invalid limits items, and
// publishes nothing if the table cannot be read.
func TestDigests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := item("TENANT#a", 3), item("TENANT#b", 1)
		source, topic := &fakeTable{items: []table.Item{a, b, tombstone("TENANT#c", 2), item("note", 1), item("TENANT#zero", 0)}}, &fakeTopic{}
		var others, broken atomic.Bool
		alone := func(context.Context) (bool, error) {
			if broken.Load() {
				return false, errDown
			}
			return !others.Load(), nil
		}
		d := Digests{Table: source, Publish: topic, HoldsLock: alone, Log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.Run(ctx) }()
		var want []table.Digest
		at := time.Now().Add(DigestEvery / 2) // between two digests
		check := func(what string, more ...table.Digest) {
			t.Helper()
			time.Sleep(time.Until(at))
			synctest.Wait()
			at = at.Add(DigestEvery)
			want = append(want, more...)
			if _, got := topic.got(); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		check("at the start", sum(a, b))
		source.set(nil, a, item("TENANT#b", 2))
		check("after a change", sum(a, item("TENANT#b", 2)))
		changed := item("TENANT#b", 2)
		changed.Body = []byte(`{"plan":"free"}`)
		source.set(nil, a, changed)
		check("after a change of a body alone", sum(a, changed))
		others.Store(true)
		check("beside another control plane")
		others.Store(false)
		broken.Store(true)
		check("without leases")
		broken.Store(false)
		source.set(errDown)
		check("without a table")
		source.set(nil, a)
		topic.failing(1)
		check("without a topic")
		check("again", sum(a))
		for _, m := range topic.told {
			if m.Every != int64(DigestEvery/time.Second) || m.At.Location() != time.UTC {
				t.Errorf("published %+v", m)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestDigestErrors: failures are returned.
func TestDigestErrors(t *testing.T) {
	for _, d := range []Digests{{Table: &fakeTable{err: errDown}}, {Table: &fakeTable{}, Publish: &fakeTopic{fails: 1}}} {
		if err := d.Update(t.Context(), time.Minute); !errors.Is(err, errDown) {
			t.Errorf("%v", err)
		}
	}
}
