package httpapi

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conns is a listener that bounds the open connections. At the bound, a new connection takes the
// place of one that waits for its client: clients that hold connections must not keep a gateway out.
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

// unreadAfter is how long an answer waits for its client before the client's place is another's first: one that reads takes it at once.
const unreadAfter = time.Second

// evict closes the connection whose client has left an answer unread for longest, for unreadAfter at least, or if there is none the
// one that has waited longest for a request, or then for its client to read. The caller holds mu.
func (c *conns) evict() {
	var idle, unread waiting
	for one := range c.open {
		idle.add(one, one.waits.Load())
		unread.add(one, one.writes.Load())
	}
	victim := unread.conn
	if idle.conn != nil && (victim == nil || time.Since(time.Unix(0, unread.since)) < unreadAfter) {
		victim = idle.conn
	}
	if victim != nil {
		delete(c.open, victim)
		_ = victim.Conn.Close()
	}
}

// waiting is the connection that has waited longest, or nil, and since when it does, in nanoseconds since the epoch.
type waiting struct {
	conn  *conn
	since int64
}

// add adds a connection that waits since a time, or does not if that is 0.
func (w *waiting) add(c *conn, since int64) {
	if since != 0 && (w.conn == nil || since < w.since) {
		w.conn, w.since = c, since
	}
}

// conn is an open connection.
type conn struct {
	net.Conn
	of *conns
	// waits and writes are since when a read, or a write, waits, in nanoseconds since the epoch, or 0.
	waits, writes atomic.Int64
	begun         atomic.Int64 // requests that are under way or answered, since the last read
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	c.waits.Store(time.Now().UnixNano())
	n, err := c.Conn.Read(b)
	c.waits.Store(0)
	c.begun.Store(0)
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	c.writes.Store(time.Now().UnixNano())
	n, err := c.Conn.Write(b)
	c.writes.Store(0)
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
