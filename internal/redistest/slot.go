package redistest

import (
	"net"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/servers"
)

// MoveSlot moves a hash slot to another master while the cluster goes on serving, as
// redis-cli --cluster reshard does. It marks the hash slot as migrating on one side and
// as importing on the other, moves its keys one by one, and then assigns the owner on
// every master. It calls between when the marks are set and after each key.
func (c *Cluster) MoveSlot(tb testing.TB, slot int, to *Node, between func()) {
	tb.Helper()
	from := c.NodeForSlot(tb, slot)
	fromID, toID := from.mustAsk(tb, "CLUSTER", "MYID"), to.mustAsk(tb, "CLUSTER", "MYID")
	to.mustAsk(tb, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
	from.mustAsk(tb, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
	between()
	port := to.portForNodes(tb)
	for {
		keys, err := from.KeysInSlot(lasting(tb), slot)
		if err != nil {
			tb.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		for _, key := range keys {
			from.mustAsk(tb, "MIGRATE", "127.0.0.1", port, key, 0, servers.ControlTimeout.Milliseconds())
			between()
		}
	}
	// The new owner first: a third node must never see the hash slot without an owner.
	to.mustAsk(tb, "CLUSTER", "SETSLOT", slot, "NODE", toID)
	from.mustAsk(tb, "CLUSTER", "SETSLOT", slot, "NODE", toID)
	if err := servers.Await("everybody to know the slot's owner", func() error { return c.CheckOwner(lasting(tb), slot, to.Node) }); err != nil {
		tb.Fatal(err)
	}
}

// portForNodes returns the port that other nodes of the cluster connect to for MIGRATE.
func (n *Node) portForNodes(tb testing.TB) string {
	tb.Helper()
	addr := n.Addr
	if strings.Contains(n.CLI(tb, "CONFIG", "GET", "tls-cluster"), "yes") {
		addr = n.TLSAddr()
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		tb.Fatal(err)
	}
	return port
}
