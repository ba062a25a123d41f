package cluster

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestRealClock empties buckets of every kind on a real server, after a charge that was
// refunded completely, and polls until they admit their whole capacity again: not earlier
// than reported, although keys expire in between, and at the latest at the next poll.
func TestRealClock(t *testing.T) {
	node := redistest.SharedNode(t)
	s, c := open(t, node.Addr), client(t, node.Addr)
	for name, spec := range map[string]spec{
		"bucket":       {ID: "n", By: []string{"tenant", "op"}, Rate: "1000/s", Burst: "2000"},
		"bucket field": {ID: "n", By: []string{"tenant"}, Rate: "1000/s", Burst: "2000"},
		"sliding":      {ID: "n", By: []string{"tenant", "op"}, Rate: "50/1s", Algorithm: "sliding_window"},
		"fixed":        {ID: "n", By: []string{"tenant", "op"}, Rate: "50/2s", Algorithm: "fixed_window"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := compile(t, spec)
			now := time.Now()
			charged := take(t, s, set, limit.Request{Tenant: name, Op: "op", Cost: 7})
			s.Refund(limit.DecisionTime{Start: now, Timeout: time.Minute}, charged)
			whole := limit.Request{Tenant: name, Op: "op", Cost: set.Limits[0].Params.Capacity}
			var due time.Time
			// A window may end between the charge and its refund.
			redistest.Eventually(t, 10*time.Second, "the whole capacity", func() bool {
				before := storeTime(t, c)
				items := take(t, s, set, whole)
				due = before.Add(time.Duration(items[0].Reset-1) * time.Millisecond)
				return items[0].Allowed
			})
			redistest.Eventually(t, time.Until(due)+5*time.Second, "the whole capacity again", func() bool {
				var b limit.Buffer
				set.Resolve(&whole, testAddrs, time.Now().UnixMicro(), &b)
				s.Peek(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
				if after := storeTime(t, c); b.Items[0].Allowed && after.Before(due) {
					t.Errorf("admitted %s before it was due", due.Sub(after))
				}
				return b.Items[0].Allowed
			})
		})
	}
}
