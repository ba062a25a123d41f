package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// seenNode is one line of CLUSTER NODES: a node as another one sees it.
type seenNode struct {
	port  int
	flags []string
	link  string
	slots []string // ranges as they are printed: "5461-10922" or "7"
}

func (s seenNode) has(flag string) bool {
	return slices.Contains(s.flags, flag)
}

// up reports whether the node is called neither failing nor unknown.
func (s seenNode) up() bool {
	return s.link == "connected" && !s.has("fail") && !s.has("fail?") && !s.has("handshake") && !s.has("noaddr")
}

// owns reports whether the node is the master of the slot.
func (s seenNode) owns(slot int) bool {
	for _, text := range s.slots {
		low, high, found := strings.Cut(text, "-")
		if !found {
			high = low
		}
		first, errFirst := strconv.Atoi(low)
		last, errLast := strconv.Atoi(high)
		// What is no number is a slot on the move, "[7->-id]", which its owner also
		// lists plainly.
		if errFirst == nil && errLast == nil && first <= slot && slot <= last {
			return true
		}
	}
	return false
}

// view returns the cluster as the node sees it.
func (n *Node) view(ctx context.Context) ([]seenNode, error) {
	reply, err := n.ask(ctx, "CLUSTER", "NODES")
	if err != nil {
		return nil, err
	}
	var view []seenNode
	for line := range strings.Lines(reply) {
		seen, err := parseSeenNode(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("read view of %s: %w", n.Addr, err)
		}
		view = append(view, seen)
	}
	return view, nil
}

// parseSeenNode reads "id ip:port@bus flags master ping pong epoch link slots...".
func parseSeenNode(words []string) (seenNode, error) {
	if len(words) < 8 {
		return seenNode{}, fmt.Errorf("parse node line: %q is too short", words)
	}
	host, _, _ := strings.Cut(words[1], "@")
	port, err := strconv.Atoi(host[strings.LastIndexByte(host, ':')+1:])
	if err != nil {
		return seenNode{}, fmt.Errorf("parse node port: %w", err)
	}
	return seenNode{
		port:  port,
		flags: strings.Split(words[2], ","),
		link:  words[7],
		slots: words[8:],
	}, nil
}

// latestView returns the view of the running node that knows the highest epoch:
// a node that was away does not know yet who took its place.
func (c *Cluster) latestView(ctx context.Context) ([]seenNode, error) {
	var (
		latest *Node
		newest = -1
	)
	for _, node := range c.Nodes {
		if !node.answers() {
			continue
		}
		fields, err := node.fields(ctx, "CLUSTER", "INFO")
		if err != nil {
			continue // it may be hanging, loading or on its way down
		}
		epoch, err := strconv.Atoi(fields["cluster_current_epoch"])
		if err == nil && epoch > newest {
			latest, newest = node, epoch
		}
	}
	if latest == nil {
		return nil, errors.New("ask for view: no node of the cluster answers")
	}
	return latest.view(ctx)
}

// Masters returns the nodes that are masters of slots now.
func (c *Cluster) Masters(tb testing.TB) []*Node {
	tb.Helper()
	return c.pick(tb, func(s seenNode) bool { return s.has("master") && len(s.slots) > 0 })
}

// Replicas returns the nodes that are replicas now and not called failed.
func (c *Cluster) Replicas(tb testing.TB) []*Node {
	tb.Helper()
	return c.pick(tb, func(s seenNode) bool { return s.has("slave") && !s.has("fail") })
}

// NodeForSlot returns the master of a slot.
func (c *Cluster) NodeForSlot(tb testing.TB, slot int) *Node {
	tb.Helper()
	owners := c.pick(tb, func(s seenNode) bool { return s.has("master") && s.owns(slot) })
	if len(owners) != 1 {
		tb.Fatalf("find master of slot %d: %d nodes have it", slot, len(owners))
	}
	return owners[0]
}

// pick returns the nodes that pass, in the order of Nodes.
func (c *Cluster) pick(tb testing.TB, pass func(seenNode) bool) []*Node {
	tb.Helper()
	view, err := c.latestView(lasting(tb))
	if err != nil {
		tb.Fatal(err)
	}
	var picked []*Node
	for _, node := range c.Nodes {
		if slices.ContainsFunc(view, func(s seenNode) bool { return s.port == node.Port && pass(s) }) {
			picked = append(picked, node)
		}
	}
	return picked
}

// WaitHealthy waits until every node runs, all agree on who is who, all slots
// are served and every replica is linked. A test calls it after it has
// restarted or woken nodes.
func (c *Cluster) WaitHealthy(tb testing.TB) {
	tb.Helper()
	if err := c.awaitHealthy(lasting(tb)); err != nil {
		tb.Fatal(err)
	}
}
