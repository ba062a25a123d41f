package cluster

import (
	"net"
	"sync"
	"time"
)

const (
	// discoveredTTL is how long a node is kept that is known only from redirects: moving
	// the keys of a slot may take that long, and once the node owns a slot it is in the
	// topology.
	discoveredTTL = time.Minute
	// maxDiscovered bounds these nodes: it is the number of masters that may be added at
	// once.
	maxDiscovered = 16
)

// discovered holds the addresses of nodes that redirects named and that own no slot yet.
type discovered struct {
	mu    sync.Mutex // guards addrs
	addrs map[string]time.Time
}

// noteDiscovered adds an address: the next fetch of the topology connects to it.
func (s *Store) noteDiscovered(addr string) {
	s.discovered.mu.Lock()
	defer s.discovered.mu.Unlock()
	if _, known := s.discovered.addrs[addr]; known || len(s.discovered.addrs) < maxDiscovered {
		if s.discovered.addrs == nil {
			s.discovered.addrs = map[string]time.Time{}
		}
		s.discovered.addrs[addr] = time.Now()
	}
}

// addDiscovered adds the discovered nodes to a topology, and drops those that are too old.
func (s *Store) addDiscovered(t, old *topology) {
	s.discovered.mu.Lock()
	defer s.discovered.mu.Unlock()
	for addr, last := range s.discovered.addrs {
		if time.Since(last) > discoveredTTL {
			delete(s.discovered.addrs, addr)
			continue
		}
		if t.nodes[addr] == nil {
			t.node(s, addr, old)
			t.discovered[addr] = true
		}
	}
}

// fullAddr returns the address in a redirect from the node from. A redirect may leave out
// the host if it is the node's own.
func fullAddr(addr string, from *node) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != "" || from == nil {
		return addr
	}
	host, _, _ = net.SplitHostPort(from.addr)
	return net.JoinHostPort(host, port)
}
