package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestWish: a call that may take more gets the more that fits, all or nothing in
// every bucket, and the units left are told behind it.
func TestWish(t *testing.T) {
	s := open(t, redistest.SharedNode(t).Addr)
	for i, c := range []struct {
		tenant, op int64 // units of the two limits
		wish, cost int64
		more       int64
		allowed    bool
	}{
		{10, 10, 5, 1, 5, true},
		{10, 4, 5, 1, 3, true}, // the narrower bucket bounds both
		{10, 9, 5, 2, 3, true}, // four checks of 2 fit into 9
		{10, 1, 5, 1, 0, true}, // nothing beyond the check itself
		{10, 10, 5, 11, 0, false},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			set := compile(t,
				spec{ID: "tenant", By: []string{"tenant"}, Rate: fmt.Sprintf("%d/366d", c.tenant)},
				spec{ID: "op", By: []string{"tenant", "op"}, Rate: fmt.Sprintf("%d/366d", c.op), Algorithm: "fixed_window"},
			)
			req := limit.Request{Tenant: fmt.Sprint("wish-", i), Op: "x", Cost: c.cost}
			var b limit.Buffer
			set.Resolve(&req, testAddrs, 0, &b)
			for j := range b.Items {
				b.Items[j].Wish = c.wish
			}
			s.Take(limit.Moment{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
			for j, units := range []int64{c.tenant, c.op} {
				it := &b.Items[j]
				taken := int64(0)
				if c.allowed {
					taken = (1 + c.more) * c.cost
				}
				if it.Source != limit.SourceStore || it.Allowed != c.allowed || it.More != c.more || it.Remaining != units-taken {
					t.Errorf("%s: %+v, want %d more and %d left", it.Limit.ID, it, c.more, units-taken)
				}
			}
		})
	}
}
