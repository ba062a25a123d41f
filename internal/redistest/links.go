package redistest

import (
	"testing"

	"github.com/limitgate/limitgate/internal/faultnet"
)

// Behind puts a link in front of every node, links[i] of Nodes[i], and makes the nodes
// announce the links to clients, and to replicas of their primaries. The cluster bus
// still connects the nodes directly, so that a fault of a link promotes no replica.
func (c *Cluster) Behind(tb testing.TB) []*faultnet.Link {
	tb.Helper()
	var links []*faultnet.Link
	var ports []int
	for _, node := range c.Nodes {
		link, err := faultnet.Listen(node.Addr)
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
	if err := c.Announce(lasting(tb), ports); err != nil {
		tb.Fatal(err)
	}
	return links
}
