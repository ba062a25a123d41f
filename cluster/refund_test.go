package cluster

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestLateRefund checks that Run makes a refund whose deadline has passed.
func TestLateRefund(t *testing.T) {
	node := redistest.SharedNode(t)
	s := open(t, node.Addr)
	set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "9/366d", Algorithm: "fixed_window"})
	req := limit.Request{Tenant: "late", Cost: 4}
	items := take(t, s, set, req)
	s.Refund(limit.DecisionTime{Start: time.Now().Add(-time.Hour)}, items)
	clear(items[0].Name) // the caller reuses its memory
	redistest.Eventually(t, 10*time.Second, "5 left, as if the cost were taken once", func() bool {
		var b limit.Buffer
		set.Resolve(&req, testAddrs, 0, &b)
		s.Peek(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
		return b.Items[0].Remaining == 9-4
	})
}
