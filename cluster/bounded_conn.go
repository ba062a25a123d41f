package cluster

import (
	"net"
	"syscall"

	"github.com/limitgate/limitgate/internal/resp"
)

// boundedConn is a connection whose reads fail when a reply announces too much: go-redis
// allocates what a reply announces. It follows the lengths in the bytes that the node sends,
// and passes them on as they are. One goroutine may read.
type boundedConn struct {
	net.Conn
	replies resp.Follower
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

// Read reads from the connection.
func (c *boundedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if _, tooLarge := c.replies.Follow(b[:n]); tooLarge != nil {
		return 0, tooLarge
	}
	return n, err
}
