package redistest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/servers"
)

// StartReplica starts a server that replicates another single server, and returns when
// both report that the link is up. Tests use the pair to change the primary of a store
// without Cluster mode. With the args of an authority the link is encrypted.
func StartReplica(tb testing.TB, of *Node, args ...string) *Node {
	tb.Helper()
	port := func(n *Node) string {
		addr := n.Addr
		if slices.Contains(args, "--tls-replication") {
			addr = n.TLSAddr()
		}
		_, text, _ := net.SplitHostPort(addr)
		return text
	}
	linked := append([]string{"--replicaof", "127.0.0.1 " + port(of)}, args...)
	if of.Password != "" {
		linked = append([]string{"--masterauth", of.Password}, linked...)
	}
	replica := Start(tb, linked...)
	err := servers.Await("the replica's link", func() error {
		return checkLink(lasting(tb), of, replica, port(replica))
	})
	if err != nil {
		tb.Fatal(err)
	}
	return replica
}

// checkLink returns nil if both ends report that the replication link is up. The primary knows
// the replica by its port.
func checkLink(ctx context.Context, primary, replica *Node, port string) error {
	if err := replica.CheckLinkUp(ctx); err != nil {
		return err
	}
	fields, err := primary.Fields(ctx, "INFO", "replication")
	if err != nil {
		return err
	}
	port = "port=" + port + ","
	for name, value := range fields {
		if strings.HasPrefix(name, "slave") && strings.Contains(value, port) &&
			strings.Contains(value, "state=online") {
			return nil
		}
	}
	return fmt.Errorf("%s does not call its replica %s online", primary.Addr, replica.Addr)
}
