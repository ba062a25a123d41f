//go:build long

package cluster

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestLongExpiry empties a bucket of 2000 at 1000/m: after 61 seconds about 1016
// units are there, not 2000.
func TestLongExpiry(t *testing.T) {
	node := redistest.SharedNode(t)
	s := open(t, node.Addr)
	set := compile(t, spec{ID: "n", By: []string{"tenant", "op"}, Rate: "1000/m", Burst: "2000"})
	req := limit.Request{Tenant: "sixty-one", Op: "op", Cost: 2000}
	begin := time.Now()
	take(t, s, set, req)
	time.Sleep(61 * time.Second) // it is what is tested
	req.Cost = 1
	left := take(t, s, set, req)[0].Remaining + 1
	elapsed := time.Since(begin)
	if most := int64(elapsed.Seconds()*1000/60) + 1; left < 1015 || left > most {
		t.Errorf("%d units after %s, want 1015 to %d", left, elapsed, most)
	}
}
