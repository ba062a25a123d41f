package cluster

import (
	"log/slog"
	"strings"
	"testing"
	"time"

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
	node.CLI(t, "CONFIG", "SET", "maxmemory", "0")
	inLog(`msg="store recovered"`)
	if n := strings.Count(log.String(), "store degraded"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log)
	}
}

// TestRefusedWritesBesideReads: a master that refuses writes has not recovered when a peek succeeds, and has when it takes a
// write again.
func TestRefusedWritesBesideReads(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t)
	log := new(syncbuffer.Buffer)
	s := openWithOptions(t, Options{DecisionTimeout: time.Second, Log: slog.New(slog.NewTextHandler(log, nil))}, node.Addr)
	limits := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000/366d"})
	peek := func() {
		var b limit.Buffer
		limits.Resolve(&limit.Request{Tenant: "t", Cost: 1}, testAddrs, 0, &b)
		s.Peek(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
		if b.Items[0].Source != limit.SourceStore {
			t.Errorf("the peek: %+v", b.Items[0])
		}
	}
	failing := func() bool {
		err := s.Shards()[0].Err
		return err != nil && strings.Contains(err.Error(), "OOM")
	}
	node.CLI(t, "CONFIG", "SET", "maxmemory", "1")
	askOf(s, limits, "t", 5*time.Second)
	peek()
	if !failing() || strings.Contains(log.String(), "store recovered") {
		t.Errorf("behind a peek: error %v, the log:\n%s", s.Shards()[0].Err, log)
	}
	node.CLI(t, "CONFIG", "SET", "maxmemory", "0")
	peek()
	if !failing() {
		t.Error("a peek ended the failure of writes")
	}
	if it := askOf(s, limits, "t", 5*time.Second); it.Source != limit.SourceStore {
		t.Errorf("the check: %+v", it)
	}
	redistest.Eventually(t, 10*time.Second, "the recovery", func() bool { return !failing() && strings.Contains(log.String(), "store recovered") })
}
