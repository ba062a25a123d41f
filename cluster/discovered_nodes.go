package cluster

import (
	"net"
	"sync"
	"time"
)

const (
	// discoveredTTL is for how long a node is kept that only redirects have named: moving a
	// slot's keys to it may take so long, and once it has a slot the topology says so.
	discoveredTTL = time.Minute
	// maxDiscovered bounds them: as many masters as may be added at once.
	maxDiscovered = 16
)

// discovered are addresses of nodes that redirects named and that own no slot yet.
type discovered struct {
	mu    sync.Mutex // guards addrs
	addrs map[string]time.Time
}

// noteDiscovered has the node at an address connected when the topology is learnt next.
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

// addDiscovered adds the nodes to a topology that redirects named lately.
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

// fullAddr returns the address in a redirect of from's, which may leave out its own
// host.
func fullAddr(addr string, from *node) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != "" || from == nil {
		return addr
	}
	host, _, _ = net.SplitHostPort(from.addr)
	return net.JoinHostPort(host, port)
}
