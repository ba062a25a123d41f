package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestNoKeyWithoutExpiry checks that buckets in a hash leave no key without an expiry if
// the user lacks the right to set one.
func TestNoKeyWithoutExpiry(t *testing.T) {
	node := redistest.Start(t)
	s := open(t, node.Addr)
	admin := redistest.Restrict(t, node, strings.Fields(strings.Replace(Rights, "+pexpireat", "", 1))...)
	one := compile(t, spec{ID: "a", By: []string{"tenant"}, Rate: "100/s"})
	two := compile(t, spec{ID: "a", By: []string{"tenant"}, Rate: "100/s"}, spec{ID: "b", By: []string{"tenant"}, Rate: "100/s"})
	for i, set := range []*limit.Set{one, two} {
		var b limit.Buffer
		set.Resolve(&limit.Request{Tenant: fmt.Sprint("t", i), Cost: 1}, testAddrs, time.Now().UnixMicro(), &b)
		s.Take(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
		if b.Items[0].Source != limit.SourceNone {
			t.Errorf("%d limits are decided by %s", i+1, b.Items[0].Source)
		}
	}
	if keys := admin.Keys(t.Context(), "lg:t:*").Val(); len(keys) > 0 {
		t.Errorf("keys without an expiry are left: %v", keys)
	}
}
