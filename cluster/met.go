package cluster

import (
	"net"
	"sync"
	"time"
)

const (
	// metTime is for how long a node is kept that only redirects have named: moving a
	// slot's keys to it may take so long, and once it has a slot the topology says so.
	metTime = time.Minute
	// maxMet bounds them: as many masters as may be added at once.
	maxMet = 16
)

// met are addresses of nodes that redirects named and that own no slot yet.
type met struct {
	mu    sync.Mutex // guards addrs
	addrs map[string]time.Time
}

// meet has the node at an address connected when the topology is learnt next.
func (s *Store) meet(addr string) {
	s.met.mu.Lock()
	defer s.met.mu.Unlock()
	if _, known := s.met.addrs[addr]; known || len(s.met.addrs) < maxMet {
		if s.met.addrs == nil {
			s.met.addrs = map[string]time.Time{}
		}
		s.met.addrs[addr] = time.Now()
	}
}

// addMet adds the nodes to a topology that redirects named lately.
func (s *Store) addMet(t, old *topology) {
	s.met.mu.Lock()
	defer s.met.mu.Unlock()
	for addr, last := range s.met.addrs {
		if time.Since(last) > metTime {
			delete(s.met.addrs, addr)
			continue
		}
		if t.nodes[addr] == nil {
			t.node(s, addr, old)
			t.met[addr] = true
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
