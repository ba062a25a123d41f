package cluster

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestOneBucketsTrouble checks that a bucket with an unreadable value affects nothing else:
// the breaker of its shard stays closed, others are decided, and the log has one line for
// the bucket, not one for each check.
func TestOneBucketsTrouble(t *testing.T) {
	node := redistest.Start(t)
	var log bytes.Buffer
	s := openWithOptions(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, node.Addr)
	c := client(t, node.Addr)
	set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000/366d"}, spec{ID: "op", By: []string{"tenant", "op"}, Rate: "1000/366d", Algorithm: "sliding_window"})
	for name, plant := range map[string]func(tenant string) error{
		"a hash that is a list": func(tenant string) error { return c.LPush(t.Context(), limit.TenantKey(tenant), "x").Err() },
		"a count and a period of 0": func(tenant string) error {
			return c.HSet(t.Context(), limit.TenantKey(tenant), ":n;t", "\x011/0/5;"+strings.Repeat("\x00", 24)).Err()
		},
		"a period of 0": func(tenant string) error {
			return c.HSet(t.Context(), limit.TenantKey(tenant), ":n;t", "\x010/0/5;"+strings.Repeat("\x00", 16)).Err()
		},
		"a window of no length": func(tenant string) error {
			return c.Set(t.Context(), limit.TenantKey(tenant)+":op;s;op=x", "\x01"+strings.Repeat("\x00", 48), time.Hour).Err()
		},
	} {
		bad := "bad-" + strings.ReplaceAll(name, " ", "-")
		if err := plant(bad); err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			var b limit.Buffer
			for _, tenant := range []string{fmt.Sprint("good-", i), bad} {
				set.Resolve(&limit.Request{Tenant: tenant, Op: "x", Cost: 1}, testAddrs, 0, &b)
			}
			s.Take(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
			if good, ill := b.Items[0].Source, b.Items[2].Source; good != limit.SourceStore || ill != limit.SourceNone {
				t.Fatalf("%s, call %d: decided by %s beside it, by %s itself", name, i, good, ill)
			}
		}
	}
	for _, n := range s.top.Load().nodes {
		if n.breaker.State() != breaker.Closed {
			t.Error("the breaker is open")
		}
	}
	if lines := strings.Count(log.String(), "not a bucket"); lines != 4 {
		t.Errorf("%d lines about four buckets:\n%.2000s", lines, log.String())
	}
}
