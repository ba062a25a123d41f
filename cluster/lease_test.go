package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestRefundWithWish refunds items whose call also wanted lease units.
func TestRefundWithWish(t *testing.T) {
	node := redistest.SharedNode(t)
	s := open(t, node.Addr)
	set := compile(t, spec{ID: "tenant", By: []string{"tenant", "op"}, Rate: "1000/366d"})
	var b limit.Buffer
	req := limit.Request{Tenant: "rw", Op: "o", Cost: 1}
	set.Resolve(&req, testAddrs, 0, &b)
	b.Items[0].LeaseWanted = 10
	at := limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}
	s.Take(at, b.Items, b.Calls)
	t.Logf("%+v", b.Items[0].Verdict)
	s.Refund(at, b.Items)
	t.Logf("%+v", s.Stats())
	if n := s.Stats().RefundsLost; n != 0 {
		t.Errorf("%d refunds lost", n)
	}
	var p limit.Buffer
	set.Resolve(&req, testAddrs, 0, &p)
	s.Peek(at, p.Items, p.Calls)
	t.Logf("left when peeking %+v", p.Items[0].Verdict)
}

// TestShadowLease leases a used-up shadow limit together with an enforced one.
func TestShadowLease(t *testing.T) {
	node := redistest.SharedNode(t)
	s := open(t, node.Addr)
	set := compile(t,
		spec{ID: "tenant", By: []string{"tenant"}, Rate: "1000/366d"},
		spec{ID: "watch", By: []string{"tenant"}, Rate: "100/366d", Mode: "shadow"},
	)
	do := func(cost, wanted int64) []limit.Item {
		var b limit.Buffer
		req := limit.Request{Tenant: "shadow-lease", Cost: cost}
		set.Resolve(&req, testAddrs, 0, &b)
		for i := range b.Items {
			b.Items[i].LeaseWanted = wanted
		}
		s.Take(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
		return b.Items
	}
	do(98, 0)
	for _, it := range do(1, 5) {
		t.Logf("%s: %+v more %d", it.Limit.ID, it.Verdict, it.LeaseGranted)
		if it.Limit.ID == "watch" && it.LeaseGranted > 1 {
			t.Errorf("the shadow bucket had two units left, and %d more are lent", it.LeaseGranted)
		}
	}
	for _, it := range do(1, 5) {
		if it.Limit.ID == "watch" && it.LeaseGranted > 0 {
			t.Errorf("the shadow bucket is empty (allowed %v), and %d more are lent", it.Allowed, it.LeaseGranted)
		}
	}
}

// TestRefundGranule refunds by the limit from before a change, and checks the expiry of the
// key after that.
func TestRefundGranule(t *testing.T) {
	node := redistest.SharedNode(t)
	s, c := open(t, node.Addr), client(t, node.Addr)
	old := compile(t, spec{ID: "b", By: []string{"tenant", "op"}, Rate: "1000/s"})
	raised := compile(t, spec{ID: "b", By: []string{"tenant", "op"}, Rate: "10/s", Burst: "1000"})
	p := &raised.Limits[0].Params
	granule := p.Granule() / 1e6
	for i := range 40 {
		tenant := fmt.Sprintf("granule-%d", i)
		held := take(t, s, old, limit.Request{Tenant: tenant, Op: "o", Cost: 100})
		// full again at the beginning of a granule
		now := time.Now().Unix()
		want := (now/granule + 3) * granule
		need := (want - now) * 10
		take(t, s, raised, limit.Request{Tenant: tenant, Op: "o", Cost: max(1, need)})
		s.Refund(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, held)
		s.Refund(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, held)
		items := take(t, s, raised, limit.Request{Tenant: tenant, Op: "o", Cost: 90})
		left := pttl(t, c, &items[0])
		if left < items[0].Reset-100 {
			t.Fatalf("the key lives %d ms, the bucket is full in %d ms: %d units are minted", left, items[0].Reset, (items[0].Reset-left)/100)
		}
	}
}

// TestKinds62 checks the errors of Redis 6.2 for a command that fails inside a script.
func TestKinds62(t *testing.T) {
	for text, want := range map[string]ErrorKind{
		"@user_script: 29: -READONLY You can't write against a read only replica.\r\n":       KindReadOnly,
		"@user_script: 29: -OOM command not allowed when used memory > 'maxmemory'.\r\n":     KindOOM,
		"@user_script: 29: -NOREPLICAS Not enough good replicas to write.\r\n":               KindNoReplicas,
		"@user_script: 29: Lua script attempted to access a non local key in a cluster node": KindMoved,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                  KindWrongType,
	} {
		if got := kindOfReply(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
