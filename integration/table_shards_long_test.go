//go:build long

package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane/dynamo"
	tables "github.com/limitgate/limitgate/controlplane/table" // this package has a function named table
	"github.com/limitgate/limitgate/internal/redistest"
)

const (
	shardTenants = 24
	shardWrites  = 24 // of each tenant
	shardWriters = 4
)

// hearing reads a letterbox all the time: reading it at the end would take minutes.
type hearing struct {
	mu       sync.Mutex // guards messages
	messages []tables.Message
}

func startHearing(t *testing.T, l *letterbox) *hearing {
	h := &hearing{}
	queue := dynamo.OpenQueue(l.site.Config, l.url)
	ctx, cancel := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() {
		for ctx.Err() == nil {
			messages, _, _ := queue.Receive(ctx)
			h.mu.Lock()
			h.messages = append(h.messages, messages...)
			h.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		cancel()
		reading.Wait()
	})
	return h
}

// all returns the messages so far.
func (h *hearing) all() []tables.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.messages)
}

// TestLongTableShards: two control planes share the shards of a stream that splits twice
// while tenants are written, and one of them is killed. All changes are published, those
// of an item in order although they are in three generations of shards. Only one of them
// publishes digests at a time, and a proxy enforces the table.
func TestLongTableShards(t *testing.T) {
	s := newSite(t)
	box := s.letterbox("told")
	box.listen()
	hearing := startHearing(t, box)
	stream := startSplitStream(t, s)
	s.env = stream.environment()
	s.push(tableLimits(t, ""), "ann")
	planes := []*proxy{s.controlPlane(), s.controlPlane()}
	follower := s.serve(filepath.Join(t.TempDir(), "snapshot"))
	w := newTenantWriter(s.table)
	var writing sync.WaitGroup
	for n := range shardWriters {
		writing.Go(func() {
			for round := range shardWrites {
				for i := n; i < shardTenants; i += shardWriters {
					body := tenantBody(w.limit())
					if round%7 == 3 {
						body = ""
					}
					if _, err := w.put(t.Context(), fmt.Sprint("TENANT#t", i), body); err != nil {
						t.Error(err)
						return
					}
				}
				pause(500 * time.Millisecond)
			}
		})
	}
	pause(4 * time.Second)
	stream.split(0)
	pause(6 * time.Second)
	stream.split(1)
	pause(3 * time.Second)
	_ = planes[0].stop(syscall.SIGKILL)
	planes[0] = s.controlPlane()
	writing.Wait()
	want := map[string]int64{}
	for _, it := range w.written() {
		want[it.Key] = max(want[it.Key], it.Version)
	}
	seen, doubled := map[string]int64{}, 0
	complete := func() bool {
		clear(seen)
		doubled = 0
		for _, m := range hearing.all() {
			if m.Item == nil {
				continue
			}
			switch before := seen[m.Item.Key]; {
			case m.Item.Version == before+1:
				seen[m.Item.Key]++
			case m.Item.Version <= before:
				doubled++
			default:
				t.Fatalf("version %d of %s is published after version %d\n%s", m.Item.Version, m.Item.Key, before, stream.sizes())
			}
		}
		for key, version := range want {
			if seen[key] < version {
				return false
			}
		}
		return true
	}
	began := time.Now()
	redistest.Eventually(t, time.Minute, "all changes are published", complete)
	t.Logf("%d changes in %d tenants are published %s after the last, %d more than once\n%s", len(w.written()), len(want), time.Since(began).Round(time.Second), doubled, stream.sizes())
	for i := range shardTenants {
		items, _, err := s.table.Get(t.Context(), fmt.Sprint("TENANT#t", i))
		if err != nil {
			t.Fatal(err)
		}
		limit := int64(100)
		if !items.Deleted {
			_, _ = fmt.Sscan(string(tenantRate.FindSubmatch(items.Body)[1]), &limit)
		}
		enforce(t, fmt.Sprint("t", i), limit, follower)
	}
	digests := func() (n int) {
		for _, m := range hearing.all() {
			if m.Digest != nil {
				n++
			}
		}
		return n
	}
	before := digests()
	pause(40 * time.Second)
	after := digests()
	t.Logf("%d digests in 40 s", after-before)
	if n := after - before; n < 3 || n > 5 {
		t.Errorf("%d digests in 40 s, of one control plane at a time there are four", n)
	}
	if metrics := follower.get("/metrics"); metric(metrics, "limitgate_config_stale") != 0 || metric(metrics, "limitgate_config_repairs_total") > 3 {
		t.Errorf("the proxy has read the table %d times, and says %s", metric(metrics, "limitgate_config_repairs_total"), follower.get("/readyz"))
	}
	for i, p := range planes {
		t.Logf("control plane %d:\n%s", i, p.output())
	}
}
