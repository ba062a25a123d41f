package catalog

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// TestLastGoodAtRestart: a tenant is corrupted by hand, without a new version or with
// an older one. The running proxy keeps the last good version, and a new one has it in
// its snapshot.
func TestLastGoodAtRestart(t *testing.T) {
	unsigned := item("TENANT#acme", 5, `{"plan":"pro"}`)
	unsigned.Actor = ""
	for what, spoilt := range map[string]table.Item{
		"a newer version":  item("TENANT#acme", 6, `{"plan":7}`),
		"the same version": item("TENANT#acme", 5, `{"plan":7}`),
		"an older version": item("TENANT#acme", 2, `{"plan":7}`),
		"without an actor": unsigned,
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "snapshot")
				tb := newTable(shared, free, pro, item("TENANT#acme", 5, `{"plan":"pro"}`))
				c := newCatalog()
				f := NewSyncer(c, tb, make(fakeUpdates), path, nil)
				if err := f.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				tb.put(spoilt)
				following(t, f, func() {
					if err := f.Refresh(t.Context()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
				})
				if got := c.Set().Plan("acme"); got != "pro" {
					t.Errorf("the proxy that runs: %s", got)
				}
				for restart := range 2 {
					c = newCatalog()
					if err := NewSyncer(c, tb, make(fakeUpdates), path, nil).Start(t.Context()); err != nil {
						t.Fatal(err)
					}
					if got := c.Set().Plan("acme"); got != "pro" {
						t.Errorf("restart %d: %s; it says %s", restart+1, got, c.Status().Error)
					}
				}
				items, _ := ReadSnapshot(path, "table")
				if len(items) != 4 {
					t.Errorf("the snapshot has it no more")
				}
			})
		})
	}
}

// TestReadOnlySnapshot: a folder that cannot be written.
func TestReadOnlySnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		c := New(Options{Name: "table", Compile: compileParts, Log: slog.New(slog.NewTextHandler(&log, nil)), Now: time.Now})
		tb := newTable(shared, free, pro)
		f := NewSyncer(c, tb, make(fakeUpdates), "/nonexistent/snapshot", nil)
		if err := f.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		_ = f.Run(ctx)
		if n := strings.Count(log.String(), "failed to write limits snapshot"); n > 60 {
			t.Errorf("%d lines in an hour", n)
		}
	})
}
