package servers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// seenNode is one line of CLUSTER NODES: a node as another one sees it.
type seenNode struct {
	port      int // that the node listens on; it identifies the node
	announced int // to which the node sends clients
	flags     []string
	link      string
	slots     []string // ranges as they are printed: "5461-10922" or "7"
}

func (s seenNode) has(flag string) bool {
	return slices.Contains(s.flags, flag)
}

// up reports whether the node is marked as neither failing nor unknown.
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
		// A text that is no number is a migrating hash slot, "[7->-id]", which its owner
		// also lists plainly.
		if errFirst == nil && errLast == nil && first <= slot && slot <= last {
			return true
		}
	}
	return false
}

// view returns the cluster as the node sees it.
func (n *Node) view(ctx context.Context) ([]seenNode, error) {
	reply, err := n.Ask(ctx, "CLUSTER", "NODES")
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
	addr, bus, _ := strings.Cut(words[1], "@")
	bus, _, _ = strings.Cut(bus, ",")
	announced, err := strconv.Atoi(addr[strings.LastIndexByte(addr, ':')+1:])
	if err != nil {
		return seenNode{}, fmt.Errorf("parse node port: %w", err)
	}
	busPort, err := strconv.Atoi(bus)
	if err != nil {
		return seenNode{}, fmt.Errorf("parse bus port: %w", err)
	}
	return seenNode{
		port:      busPort - busPortOffset,
		announced: announced,
		flags:     strings.Split(words[2], ","),
		link:      words[7],
		slots:     words[8:],
	}, nil
}
