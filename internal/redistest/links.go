package redistest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/faultnet"
)

// Behind puts a link in front of every node, links[i] of Nodes[i], and makes the nodes
// announce the links to clients, and to replicas of their primaries. The cluster bus
// still connects the nodes directly, so that a fault of a link promotes no replica.
func (c *Cluster) Behind(tb testing.TB) []*faultnet.Link {
	tb.Helper()
	links, ports := c.links(tb, func(n *Node) string { return n.Addr })
	if err := c.Announce(lasting(tb), ports); err != nil {
		tb.Fatal(err)
	}
	return links
}

// BehindTLS is Behind for the TLS ports of the nodes.
func (c *Cluster) BehindTLS(tb testing.TB) []*faultnet.Link {
	tb.Helper()
	links, ports := c.links(tb, func(n *Node) string { return n.TLSAddr() })
	for i, node := range c.Nodes {
		node.CLI(tb, "CONFIG", "SET", "cluster-announce-tls-port", strconv.Itoa(ports[i]))
	}
	Eventually(tb, time.Minute, "all nodes know the announced TLS ports", func() bool {
		return !slices.ContainsFunc(c.Nodes, func(n *Node) bool {
			view := strings.Fields(n.CLI(tb, "CLUSTER", "SHARDS"))
			return slices.ContainsFunc(ports, func(port int) bool { return !slices.Contains(view, strconv.Itoa(port)) })
		})
	})
	if err := c.AwaitHealthy(lasting(tb)); err != nil {
		tb.Fatal(err)
	}
	return links
}

// links opens a link to an address of every node, and returns their ports too.
func (c *Cluster) links(tb testing.TB, addr func(*Node) string) (links []*faultnet.Link, ports []int) {
	tb.Helper()
	for _, node := range c.Nodes {
		link, err := faultnet.Listen(addr(node))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := link.Close(); err != nil {
				tb.Errorf("close link: %v", err)
			}
		})
		links, ports = append(links, link), append(ports, link.Port())
	}
	return links, ports
}
