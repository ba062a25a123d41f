package httpapi

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conns is a listener that bounds the open connections. At the bound, a new connection takes the
// place of the one that has waited longest for a request: clients that hold connections must not
// keep a gateway out.
type conns struct {
	net.Listener
	most   int
	closed sync.Once

	mu   sync.Mutex // guards open
	open map[*conn]struct{}
}

// Bound returns a listener whose connections are MaxConns at most. TLS belongs above it.
func Bound(l net.Listener) net.Listener {
	return &conns{Listener: l, most: MaxConns, open: map[*conn]struct{}{}}
}

// Accept implements net.Listener.
func (c *conns) Accept() (net.Conn, error) {
	accepted, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	added := &conn{Conn: accepted, of: c}
	added.waits.Store(time.Now().UnixNano())
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= c.most {
		c.evict()
	}
	c.open[added] = struct{}{}
	return added, nil
}

// Close implements net.Listener. Further calls have no effect.
func (c *conns) Close() (err error) {
	c.closed.Do(func() { err = c.Listener.Close() })
	return err
}

// evict closes the connection that has waited longest. The caller holds mu.
func (c *conns) evict() {
	var victim *conn
	least := int64(0)
	for one := range c.open {
		if since := one.waits.Load(); since != 0 && (victim == nil || since < least) {
			victim, least = one, since
		}
	}
	if victim != nil {
		delete(c.open, victim)
		_ = victim.Conn.Close()
	}
}

// conn is an open connection.
type conn struct {
	net.Conn
	of    *conns
	waits atomic.Int64 // since when a read waits, in nanoseconds since the epoch, or 0
	begun atomic.Int64 // requests that are under way or answered, since the last read
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	c.waits.Store(time.Now().UnixNano())
	n, err := c.Conn.Read(b)
	c.waits.Store(0)
	c.begun.Store(0)
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
