package server

import (
	"context"
	"net"
	"time"
)

// Session answers the commands of one connection. It is not used concurrently.
type Session interface {
	// Weigh returns what a command costs in the present state of the session: whether
	// it may wait for the store, and whether it takes long, because it needs much of a
	// processor or walks the store. One that does neither is light, and a loop serves
	// it itself. Few long ones run at a time, and the context of each ends when its
	// client hangs up.
	Weigh(cmd [][]byte) (waits, long bool)
	// Serve answers cmds in order, appending RESP to out and returning it. There
	// is at least one command and each has at least one word. The words alias
	// private memory that is valid only during the call. It returns how many it has
	// answered, at least one. It answers no more than the first if that takes long, and
	// stops before one that is heavier than the first, and before one that could make
	// a large reply when the reply is large already. When quit is true the
	// reply is written and the connection closed. ctx ends when the connection
	// is killed or a drain runs out of time, and for a long command when the client
	// hangs up.
	Serve(ctx context.Context, cmds [][][]byte, out []byte) (reply []byte, served int, quit bool)
	// Held returns how many bytes the session keeps between calls that its client
	// made it keep.
	Held() int
	// Close is called once when the connection has ended.
	Close()
}

// AsyncSession is a session that can answer without making its connection's
// goroutine wait. Its methods never wait but for Serve and Resume.
type AsyncSession interface {
	Session
	// Start begins what Serve does, for commands that arrived at since, or now if
	// that is zero. Where it has not begun, nothing has happened and Serve must be
	// called. Where it has answered the reply is complete.
	// Otherwise the words must stay valid until End, which is to be called when
	// done was called with the token, on any goroutine, or at Until. After End it
	// is not called any more. What Start sends may wait for Options.Flush.
	Start(since time.Time, cmds [][][]byte, out []byte, done func(token uint64), token uint64) (reply []byte, begun, answered bool)
	Deadline() time.Time
	// Finish ends what Begin has begun. It returns false when Resume has to do it.
	Finish() (reply []byte, ok bool)
	FinishBlocking() (reply []byte)
}

// Peer describes a connection to its new session.
type Peer struct {
	// ID is unique among the connections of one Server. It starts at 1 and grows.
	ID int64
	// Addr is the client's end of the connection, LocalAddr is ours.
	Addr, LocalAddr net.Addr
	// Kill closes the connection. It may be called from any goroutine, also when
	// the connection has ended, and does not block. Session.Close follows.
	Kill func()
	// SetAuthenticated says whether the client has authenticated; it has not at
	// first. It sets the bounds of the commands that are read from then on: those
	// after the one being served if it has not, after the batch if it has.
	// Without Options.RequireAuth it changes nothing. It may be called from any
	// goroutine.
	SetAuthenticated func(bool)
}
