package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/syncbuffer"
	"github.com/limitgate/limitgate/limit"
)

// TestRefusedMark: a proxy without requests logs that a node refuses all writes, and that it no longer does.
func TestRefusedMark(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t)
	log := new(syncbuffer.Buffer)
	s := openWithOptions(t, Options{DecisionTimeout: time.Second, ReloadInterval: 20 * time.Millisecond, Log: slog.New(slog.NewTextHandler(log, nil))}, node.Addr)
	if _, err := s.NewHeartbeat().Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	inLog := func(text string) {
		t.Helper()
		redistest.Eventually(t, 10*time.Second, text, func() bool { return strings.Contains(log.String(), text) })
	}
	node.CLI(t, "CONFIG", "SET", "maxmemory", "1")
	inLog(`msg="store degraded, using backstop" node=` + node.Addr + ` kind=oom`)
	refused := func() (calls int) {
		_, stats, _ := strings.Cut(node.CLI(t, "INFO", "commandstats"), "cmdstat_set:")
		_, stats, _ = strings.Cut(stats, "rejected_calls=")
		if _, err := fmt.Sscanf(stats, "%d,", &calls); err != nil {
			t.Fatal(err)
		}
		return calls
	}
	begun := refused()
	redistest.Eventually(t, 30*time.Second, "writes of a proxy without requests", func() bool { return refused() >= begun+12 })
	if n := s.top.Load().nodes[node.Addr]; n.changes[breaker.Open].Load() > 0 || s.Shards()[0].Err == nil {
		t.Errorf("a proxy without requests has opened its breaker %d times, and reports %v", n.changes[breaker.Open].Load(), s.Shards()[0].Err)
	}
	node.CLI(t, "CONFIG", "SET", "maxmemory", "0")
	inLog(`msg="store recovered"`)
	if n := strings.Count(log.String(), "store degraded"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log)
	}
}

// TestRefusedWritesBesideReads: calls that are answered without a write do not end that a node refuses writes, whatever
// else fails between, and a node without requests of writes recovers all the same.
func TestRefusedWritesBesideReads(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t)
	log := new(syncbuffer.Buffer)
	s := openWithOptions(t, Options{DecisionTimeout: time.Second, ReloadInterval: 500 * time.Millisecond, Log: slog.New(slog.NewTextHandler(log, nil))}, node.Addr)
	limits := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000/366d"})
	watching := compile(t, spec{ID: "w", By: []string{"tenant"}, Rate: "1/366d", Mode: "shadow"})
	peek := func() {
		t.Helper()
		var b limit.Buffer
		limits.Resolve(&limit.Request{Tenant: "t", Cost: 1}, testAddrs, 0, &b)
		s.Peek(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
		if b.Items[0].Source != limit.SourceStore {
			t.Errorf("the peek: %+v", b.Items[0])
		}
	}
	failing := func() bool {
		sh := s.Shards()[0]
		return sh.Err != nil && strings.Contains(sh.Err.Error(), "OOM") && !sh.Since.IsZero()
	}
	askOf(s, watching, "t", 5*time.Second) // what a shadow limit denies later
	node.CLI(t, "CONFIG", "SET", "maxmemory", "1")
	askOf(s, limits, "t", 5*time.Second)
	for begin := time.Now(); time.Since(begin) < 3*time.Second; {
		peek()
		askOf(s, watching, "t", 5*time.Second)
		s.top.Load().nodes[node.Addr].reportHealth(context.DeadlineExceeded)
		if !failing() || strings.Contains(log.String(), "store recovered") {
			t.Fatalf("error %v, the log:\n%s", s.Shards()[0].Err, log)
		}
	}
	askOf(s, limits, "t", 5*time.Second) // the breaker has its error
	node.CLI(t, "CONFIG", "SET", "maxmemory", "0")
	redistest.Eventually(t, 10*time.Second, "the recovery, without a call", func() bool {
		return s.Shards()[0].Err == nil && strings.Contains(log.String(), "store recovered")
	})
	if n := strings.Count(log.String(), "store degraded"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log)
	}
}
