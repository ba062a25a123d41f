package cluster

import (
	"fmt"
	"net"
	"syscall"

	"github.com/limitgate/limitgate/internal/resp"
)

// boundedConn is a connection whose reads fail when a reply announces too much: go-redis
// allocates what a reply announces. It follows the lengths in the bytes that the node sends,
// and passes them on as they are. See
// https://redis.io/docs/latest/develop/reference/protocol-spec/. One goroutine may read.
type boundedConn struct {
	net.Conn
	first   byte  // of the current line; 0 at its begin
	number  int64 // in the current line, -1 for a negative one
	line    int   // the length of the current line
	skip    int64 // the bytes of a string, with its end, that are still to come
	pending int64 // the elements of arrays that are still to come
}

// boundedTCPConn is a boundedConn on plain TCP: go-redis looks at the socket of such a
// connection before it uses one of its pool, so that it does not use a closed one.
type boundedTCPConn struct {
	*boundedConn
	syscall.Conn
}

// bound returns conn with bounded replies.
func bound(conn net.Conn) net.Conn {
	b := &boundedConn{Conn: conn}
	if socket, ok := conn.(syscall.Conn); ok {
		return boundedTCPConn{b, socket}
	}
	return b
}

const (
	// maxLine bounds a line of a reply, in bytes.
	maxLine = 64 << 10
	// maxPending bounds the elements of the arrays of a reply, nested ones included. The
	// largest reply has two for each of maxInstances proxies, or some for each range of hash
	// slots.
	maxPending = 1 << 17
)

// Read reads from the connection.
func (c *boundedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if tooLarge := c.follow(b[:n]); tooLarge != nil {
		return 0, tooLarge
	}
	return n, err
}

// follow follows the lengths in b.
func (c *boundedConn) follow(b []byte) error {
	for len(b) > 0 {
		if c.skip > 0 {
			n := min(c.skip, int64(len(b)))
			c.skip -= n
			b = b[n:]
			continue
		}
		if err := c.followLine(b[0]); err != nil {
			return err
		}
		b = b[1:]
	}
	return nil
}

// followLine follows one character of a line.
func (c *boundedConn) followLine(char byte) error {
	switch {
	case c.first == 0:
		c.first, c.number, c.line = char, 0, 0
		return nil
	case char == '\n':
		err := c.endLine()
		c.first = 0
		return err
	case c.line == maxLine:
		return fmt.Errorf("%w: a line of more than %d bytes", resp.ErrReply, maxLine)
	}
	c.line++
	c.addDigit(char)
	return nil
}

// addDigit adds a character of a line to the number in it.
func (c *boundedConn) addDigit(char byte) {
	switch {
	case char == '-':
		c.number = -1
	case char >= '0' && char <= '9' && c.number >= 0 && c.number <= resp.MaxBulk:
		c.number = c.number*10 + int64(char-'0')
	}
}

// endLine checks the length that the line has announced.
func (c *boundedConn) endLine() error {
	c.pending = max(0, c.pending-1)
	switch c.first {
	case '$', '=', '!':
		if c.number > resp.MaxBulk {
			return fmt.Errorf("%w: a string of more than %d bytes", resp.ErrReply, resp.MaxBulk)
		}
		if c.number >= 0 {
			c.skip = c.number + 2
		}
	case '*', '~', '>':
		c.pending += max(0, c.number)
	case '%', '|':
		c.pending += 2 * max(0, c.number)
	}
	if c.pending > maxPending {
		return fmt.Errorf("%w: more than %d elements", resp.ErrReply, maxPending)
	}
	return nil
}
