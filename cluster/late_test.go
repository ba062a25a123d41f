package cluster

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// TestLateReplies checks that callers leave at their deadline while their connection waits
// for the replies, and that late replies are used: a denial, and granted lease units.
func TestLateReplies(t *testing.T) {
	const deadline, slow = 20 * time.Millisecond, 200 * time.Millisecond
	node := redistest.Start(t)
	var l *limiter.Limiter
	learnt := make(chan struct{}, 1)
	s := openWithOptions(t, Options{Late: func(call []limit.Item, sent time.Time) {
		l.CacheLateReply(call, sent)
		learnt <- struct{}{}
	}}, node.Addr)
	set := compile(t, spec{ID: "tenant", By: []string{"tenant"}, Rate: "1000/h"}, spec{ID: "op", By: []string{"tenant", "op"}, Rate: "1/h"})
	for _, limited := range set.Limits {
		limited.Lease = limit.Lease{On: limited.ID == "tenant", Size: 20, TTL: limit.MaxLeaseTTL}
	}
	l = limiter.New(limiter.Options{
		Store: s, Backstop: &refuser{asked: map[string]int{}}, Addrs: testAddrs, Timeout: deadline, DenyCacheSize: 100,
	}, set)
	source := func(op string) limit.Source {
		var b limiter.Batch
		b.Requests = append(b.Requests, limit.Request{Tenant: "t", Op: op, Cost: 1})
		l.Decide(&b)
		return b.Decisions[0].Source
	}
	for _, op := range []string{"", "x"} { // the rest of a bucket is known, and "x" has nothing left
		if got := source(op); got != limit.SourceStore {
			t.Fatalf("op %q is decided by %s", op, got)
		}
	}
	for _, c := range []struct {
		op    string
		later limit.Source
	}{{"", limit.SourceLease}, {"x", limit.SourceCache}} {
		node.Stop()
		began := time.Now()
		if got := source(c.op); got != limit.SourceBackstop {
			t.Errorf("op %q is decided by %s while the store stands still", c.op, got)
		}
		if took := time.Since(began); took > slow {
			t.Errorf("op %q took %s, where %s are allowed", c.op, took, deadline)
		}
		node.Cont()
		<-learnt
		if got := source(c.op); got != c.later {
			t.Errorf("op %q is decided by %s after the late reply, want %s", c.op, got, c.later)
		}
	}
}
