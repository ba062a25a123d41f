package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// writeTimeout is how long a write to an unblockedConn waits.
const writeTimeout = time.Millisecond

// maxUnwritten bounds the bytes that an unblockedConn keeps: more than the batches in flight
// of one pipeline usually have.
const maxUnwritten = 8 << 20

// unblockedConn is a connection whose writes do not wait for a node that does not read: a
// goroutine writes what the kernel does not take at once. It may lie below TLS, which a write
// that timed out would break, see crypto/tls.Conn.SetWriteDeadline. Its write deadlines have
// no effect: the goroutine closes the connection if a write takes longer than timeout.
type unblockedConn struct {
	net.Conn
	timeout time.Duration
	writers sync.WaitGroup // the goroutine

	mu      sync.Mutex // guards the fields below, and orders writes
	rest    []byte     // what the goroutine has to write next
	writing bool       // the goroutine runs
	failed  error      // of the goroutine
}

// Write writes b, or leaves the rest of it to the goroutine.
func (c *unblockedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.failed != nil:
		return 0, c.failed
	case c.writing && len(c.rest)+len(b) > maxUnwritten:
		return 0, fmt.Errorf("write: the node has not read %d bytes", len(c.rest))
	case c.writing:
		c.rest = append(c.rest, b...)
		return len(b), nil
	}
	_ = c.Conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	n, err := c.Conn.Write(b)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	c.rest, c.writing = append(c.rest[:0], b[n:]...), true
	c.writers.Go(c.writeRest)
	return len(b), nil
}

// writeRest writes what is left, until nothing is.
func (c *unblockedConn) writeRest() {
	for {
		out := c.takeRest()
		if len(out) == 0 {
			return
		}
		_ = c.Conn.SetWriteDeadline(time.Now().Add(c.timeout))
		if _, err := c.Conn.Write(out); err != nil {
			c.mu.Lock()
			c.failed = err
			c.mu.Unlock()
			_ = c.Conn.Close()
			return
		}
	}
}

// takeRest returns what is left to write. If that is nothing, the goroutine has ended.
func (c *unblockedConn) takeRest() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.rest
	c.rest = nil
	c.writing = len(out) > 0
	return out
}

// Close closes the connection and waits for the goroutine.
func (c *unblockedConn) Close() error {
	err := c.Conn.Close()
	c.writers.Wait()
	return err
}

// SetDeadline sets the deadline of reads.
func (c *unblockedConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline has no effect.
func (c *unblockedConn) SetWriteDeadline(time.Time) error { return nil }
