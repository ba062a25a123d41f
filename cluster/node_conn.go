package cluster

import (
	"io"
	"net"
	"time"

	"github.com/limitgate/limitgate/internal/resp"
)

// Socket is a connection that an event loop reads. Its methods are safe for concurrent use,
// except Read.
type Socket interface {
	// Watch makes the loop call ready when there may be input, and when the connection has ended.
	// When ready returns an error the loop closes the socket and then calls ended with it.
	Watch(ready func() error, ended func(error))
	// Read reads input that has arrived. ready calls it.
	Read(b []byte) (int, error)
	// Write writes b without waiting: the loop writes what the kernel does not take.
	Write(b []byte) (int, error)
	// HangUp ends the connection: the next read fails.
	HangUp()
}

// nodeConn is a connection to a node, with the options for combining calls on it.
type nodeConn struct {
	net.Conn           // nil if there is a socket
	socket   Socket    // nil if a goroutine reads
	out      io.Writer // for batches: writes to it do not wait
	in       *resp.Reader
	opts     batchOptions
	woken    chan struct{} // wakes the goroutine that waits for the loop; capacity one
}

func newNodeConn(conn net.Conn) *nodeConn {
	return &nodeConn{Conn: conn, out: conn, in: resp.NewReader(conn), woken: make(chan struct{}, 1)}
}

// moveTo replaces the connection by the socket that it has become. dial has made sure that
// nothing is buffered.
func (conn *nodeConn) moveTo(s Socket) {
	conn.Conn, conn.socket, conn.out, conn.in = nil, s, s, resp.NewReader(s)
}

// unblock makes writes not wait. Those of an encrypted connection do not wait anyway.
func (conn *nodeConn) unblock(timeout time.Duration) {
	if tcp, ok := conn.Conn.(*net.TCPConn); ok {
		conn.Conn = &unblockedConn{Conn: tcp, timeout: timeout}
		conn.out = conn.Conn
	}
}

// hangUp closes the connection. The reader notices that.
func (conn *nodeConn) hangUp() {
	if conn.socket != nil {
		conn.socket.HangUp()
		return
	}
	_ = conn.Close()
}

// wake makes the reader look at the pipeline.
func (conn *nodeConn) wake() {
	if conn.socket == nil {
		_ = conn.SetReadDeadline(time.Now())
		return
	}
	select {
	case conn.woken <- struct{}{}:
	default: // it is about to look
	}
}
