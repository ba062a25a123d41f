package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/limit"
)

// topology maps each hash slot to its master. It is immutable once built.
type topology struct {
	cluster   bool
	single    *node // owns every slot if there is no cluster
	slots     [limit.NumHashSlots]*node
	nodes     map[string]*node
	pipelines []*pipeline // of nodes
	// discovered are the nodes that own no slot: their topology may be out of date.
	discovered map[string]bool
}

// owner returns the master of a slot, or nil.
func (t *topology) owner(slot uint16) *node { return t.slots[slot] }

// slotOf returns a slot that a master owns. Ok is false if it owns none.
func (t *topology) slotOf(n *node) (slot uint16, ok bool) {
	i := slices.Index(t.slots[:], n)
	return uint16(max(0, i)), i >= 0
}

// ownerOf returns the master of a key. The error is errNoNode in words for an operator.
func (t *topology) ownerOf(key string) (*node, error) {
	slot := limit.HashSlot([]byte(key))
	switch n := t.owner(slot); {
	case n != nil:
		return n, nil
	case len(t.nodes) == 0:
		return nil, noOwnerError("no master of the store is known")
	default:
		return nil, noOwnerError(fmt.Sprintf("no master serves hash slot %d yet: redis-cli cluster info on a node of the cluster says how many are served", slot))
	}
}

// nodeOf returns the master of an item's bucket, or nil.
func (t *topology) nodeOf(it *limit.Item) *node {
	if t.single != nil {
		return t.single // without working out the slot
	}
	return t.owner(it.HashSlot())
}

// discover fetches the topology from the first node that answers, then calls agree with it.
// Nodes known to old keep their connections.
func (s *Store) discover(ctx context.Context, old *topology, agree func(context.Context, *topology) error) (*topology, error) {
	var errs topologyErrors
	for _, addr := range s.opts.askOrder(old) {
		t, err := s.fetchTopology(ctx, addr, old)
		if err == nil {
			if err = agree(ctx, t); err != nil {
				t.abandon(old)
				return nil, err
			}
			return t, nil
		}
		errs = append(errs, topologyError{addr, err})
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("fetch topology: %w", errs)
}

// abandon closes the connections of a topology that is not used, except those shared with
// old.
func (t *topology) abandon(old *topology) {
	for addr, n := range t.nodes {
		if old == nil || old.nodes[addr] != n {
			_ = n.client.Close()
		}
	}
}

// askOrder returns the addresses to fetch the topology from: the nodes of old, then the
// seeds.
func (o *Options) askOrder(old *topology) []string {
	var addrs []string
	if old != nil && o.Sentinel == "" { // a master does not know its successor
		for addr := range old.nodes {
			if !old.discovered[addr] {
				addrs = append(addrs, addr)
			}
		}
	}
	for _, addr := range o.Addrs {
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// fetchTopology fetches the topology from one node, which may be a replica.
func (s *Store) fetchTopology(ctx context.Context, addr string, old *topology) (*topology, error) {
	if s.opts.Sentinel != "" {
		master, err := s.opts.masterOf(ctx, addr)
		if err != nil {
			return nil, err
		}
		addr = master
	}
	opts := s.opts.clientOptions(addr)
	opts.PoolSize = 1
	client := redis.NewClient(opts)
	defer func() { _ = client.Close() }()
	info, err := client.Info(ctx, "cluster").Result()
	if err != nil {
		return nil, err
	}
	if !strings.Contains(info, "cluster_enabled:1") {
		if err := s.countRole(assertMaster(ctx, client, addr)); err != nil {
			return nil, err
		}
		return s.single(addr, old), nil
	}
	ranges, err := client.ClusterSlots(ctx).Result() //nolint:staticcheck // CLUSTER SHARDS does not exist before Redis 7
	if err != nil {
		return nil, err
	}
	t := s.assemble(addr, ranges, old)
	if len(t.nodes) == 0 {
		return nil, errors.New("no node of the cluster owns slots yet: run redis-cli --cluster create first")
	}
	s.addDiscovered(t, old)
	return t, nil
}

// single returns the topology of one Redis that owns every slot.
func (s *Store) single(addr string, old *topology) *topology {
	t := &topology{nodes: map[string]*node{}}
	n := t.node(s, addr, old)
	t.single = n
	for i := range t.slots {
		t.slots[i] = n
	}
	return t
}

// assemble builds a topology from the reply to CLUSTER SLOTS of the node asked.
func (s *Store) assemble(asked string, ranges []redis.ClusterSlot, old *topology) *topology {
	t := &topology{cluster: true, nodes: map[string]*node{}, discovered: map[string]bool{}}
	askedHost, _, _ := net.SplitHostPort(asked)
	for _, r := range ranges {
		if len(r.Nodes) == 0 || r.Start < 0 || r.End >= limit.NumHashSlots {
			continue
		}
		// The master comes first. A node that does not know its own host leaves it out: it
		// is the host that was asked.
		host, port, err := net.SplitHostPort(r.Nodes[0].Addr)
		if err != nil {
			continue
		}
		if host == "" || host == "?" {
			host = askedHost
		}
		n := t.node(s, net.JoinHostPort(host, port), old)
		for slot := r.Start; slot <= r.End; slot++ {
			t.slots[slot] = n
		}
	}
	return t
}

// node returns the node of an address, with its connections if old has it.
func (t *topology) node(s *Store, addr string, old *topology) *node {
	if n := t.nodes[addr]; n != nil {
		return n
	}
	var n *node
	if old != nil {
		n = old.nodes[addr]
	}
	if n == nil {
		n = s.newNode(addr, t.cluster)
	}
	t.nodes[addr] = n
	t.pipelines = append(t.pipelines, n.pipeline)
	return n
}
