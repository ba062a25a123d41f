package server

import (
	"context"
	"crypto/x509"
	"net"
	"time"
)

// Session answers the commands of one connection. It is not used concurrently.
type Session interface {
	// Weigh returns the cost of a command in the present state of the session: whether it
	// may wait for the store, and whether it is long, because it needs much processor
	// time or iterates over the store. A command that is neither is light and served by
	// the event loop itself. Few long ones run at a time, and the context of each ends
	// when its client closes the connection.
	Weigh(cmd [][]byte) (waits, long bool)
	// Serve answers cmds in order, appending RESP to out and returning it. There is at
	// least one command and each has at least one word. The words alias private memory
	// that is valid only during the call. Serve returns how many commands it has
	// answered, at least one. It answers only the first if that is long. It stops before
	// a command that is heavier than the first, and before one that could make a large
	// reply when the reply is large already. When quit is true the reply is written and
	// the connection closed. ctx ends when the connection is killed or a drain runs out
	// of time, and for a long command when the client closes the connection.
	Serve(ctx context.Context, cmds [][][]byte, out []byte) (reply []byte, served int, quit bool)
	// Held returns how many bytes the session keeps between calls because of its client.
	Held() int
	// Close is called once when the connection has ended.
	Close()
}

// AsyncSession is a session that can answer without blocking the caller. Only Serve and
// FinishBlocking block.
type AsyncSession interface {
	Session
	// Start starts the work of Serve, for commands that arrived at since, or now if since
	// is zero. If it does not start, it has no effect and Serve must be called. If it
	// answers at once, the reply is complete. Otherwise the words must stay valid until
	// Finish, which must be called after done was called with the token, by any
	// goroutine, or at Deadline. After Finish, done is not called any more. Requests that
	// Start has made may wait for Options.Flush.
	Start(since time.Time, cmds [][][]byte, out []byte, done func(token uint64), token uint64) (reply []byte, begun, answered bool)
	Deadline() time.Time
	// Finish ends the work that Start has started. It returns false if FinishBlocking
	// must be called instead.
	Finish() (reply []byte, ok bool)
	FinishBlocking() (reply []byte)
}

// FastSession is a session that can answer some commands one at a time, at once and in a
// fraction of the time of Start.
type FastSession interface {
	AsyncSession
	// BeginFast begins a run of commands. It returns false, without effect, if Fast would
	// answer none; otherwise EndFast must be called before any other method.
	BeginFast() bool
	// Fast answers a command, or has no effect and returns false. The reply is appended to
	// out.
	Fast(cmd [][]byte, out []byte) (reply []byte, ok bool)
	// EndFast ends the run. Last is the name of the last command that Fast has answered,
	// or nil.
	EndFast(last []byte)
}

// Peer describes a connection to its new session.
type Peer struct {
	// ID is unique among the connections of one Server. It starts at 1 and increases.
	ID int64
	// Addr is the client's address, LocalAddr the server's.
	Addr, LocalAddr net.Addr
	// Kill closes the connection. It is safe for concurrent use, also when the connection
	// has ended, and does not block. Session.Close follows.
	Kill func()
	// SetAuthenticated sets whether the client has authenticated, which is false at
	// first. It sets the bounds of the commands that are read from then on: of those
	// after the one being served for false, of those after the batch for true. Without
	// Options.RequireAuth it has no effect. It is safe for concurrent use.
	SetAuthenticated func(bool)
	// Certificate is the certificate of a TLS client, if it was verified, or nil.
	Certificate *x509.Certificate
}
