package integration

import (
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestFailover: a primary dies, its replica takes over, and the proxy finds it without
// help. Every check meanwhile gets a decision.
func TestFailover(t *testing.T) {
	c := redistest.StartCluster(t, 3, 1, "--cluster-node-timeout", "1000", "--cluster-require-full-coverage", "no")
	limits := writeLimits(t, "{version: 1, default_plan: p, plans: {p: [{id: a, by: [tenant], rate: 1000000/366d, algorithm: fixed_window}]}}")
	p := serve(t, limits, "--redis", strings.Join(c.Addrs(), ","), "--decision-timeout", "50ms")
	client := p.client()
	ask := func(tenant string) verdict {
		v, err := check(client, tenant, "-", "-")
		if err != nil {
			t.Fatalf("an error instead of a decision: %v", err)
		}
		return v
	}
	if v := ask("t"); v.source != "store" {
		t.Fatalf("before: %+v", v)
	}
	owner := c.NodeForSlot(t, int(limit.HashSlot([]byte(limit.TenantKey("t")))))
	owner.Kill()
	degraded := 0
	eventually(t, "the promoted replica decides", func() bool {
		v := ask("t")
		if v.source != "store" {
			degraded++
		}
		return v.source == "store"
	})
	if degraded == 0 {
		t.Error("no decision was degraded: the primary did not die")
	}
	t.Logf("%d checks were decided by the backstop", degraded)
}

// TestDemoted: the proxy stops using a master that becomes a replica, and uses it again
// when it is a master again.
func TestDemoted(t *testing.T) {
	master, other := redistest.Start(t), redistest.Start(t)
	limits := writeLimits(t, "{version: 1, default_plan: p, plans: {p: [{id: a, by: [tenant], rate: 3/366d}]}}")
	p := serve(t, limits, "--redis", master.Addr, "--decision-timeout", "200ms")
	client := p.client()
	source := func() string {
		v, err := check(client, "t", "-", "-")
		if err != nil {
			t.Fatal(err)
		}
		return v.source
	}
	if s := source(); s != "store" {
		t.Fatalf("before: decided by %s", s)
	}
	// Denials write nothing, so a replica could still reply to them.
	for range 3 {
		source()
	}
	host, port, _ := strings.Cut(other.Addr, ":")
	master.CLI(t, "REPLICAOF", host, port)
	eventually(t, "the backstop decides", func() bool { return source() == "backstop" })
	master.CLI(t, "REPLICAOF", "NO", "ONE")
	eventually(t, "the store decides again", func() bool { return source() == "store" })
}
