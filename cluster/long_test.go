//go:build long

package cluster

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestLongExpiry empties a bucket of 2000 at 1000/m: after 61 seconds it has the 1016 units
// of that time, not 2000.
func TestLongExpiry(t *testing.T) {
	node := redistest.SharedNode(t)
	s, c := open(t, node.Addr), client(t, node.Addr)
	set := compile(t, spec{ID: "n", By: []string{"tenant", "op"}, Rate: "1000/m", Burst: "2000"})
	req := limit.Request{Tenant: "sixty-one", Op: "op", Cost: 2000}
	before := storeTime(t, c)
	if it := take(t, s, set, req)[0]; !it.Allowed {
		t.Fatalf("the bucket is not full to begin with: %+v", it.Verdict)
	}
	empty := storeTime(t, c)
	redistest.Eventually(t, 90*time.Second, "61 s on the store's clock", func() bool {
		return storeTime(t, c).Sub(empty) >= 61*time.Second
	})
	req.Cost = 1
	left := take(t, s, set, req)[0].Remaining + 1
	elapsed := storeTime(t, c).Sub(before)
	if most := elapsed.Milliseconds() / 60; left < 1016 || left > most {
		t.Errorf("%d units after %s, want 1016 to %d", left, elapsed, most)
	}
}

// TestLongConformance: one of the two options alone gives the same answers, too.
func TestLongConformance(t *testing.T) {
	conform(t, Options{SeparateChecks: true}, Options{DeclaredKeys: true})
}
