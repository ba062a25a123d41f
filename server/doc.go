// Package server accepts connections, reads the commands that arrive on them, passes them
// to a Session, and writes the replies.
//
// Its guarantees:
//
// Order and one write. All complete commands that have arrived on a connection are
// answered together, in order, and their replies leave in one write. Commands after one
// that quits are not run.
//
// Bounds. A connection costs a bounded amount of memory and time, whatever the input:
// lengths are checked before anything is stored; a half-sent command, a silent client and
// a client that does not read its replies are cut off; and there are never more than
// Options.MaxConns connections. A large reply is written before the next command of its
// batch is served. All connections together hold Options.MaxBuffered bytes at most:
// beyond that the connections that hold most are closed. A panic in a session ends its
// connection, not the process.
//
// One parser, bounded by construction. It implements Redis' framing and inline syntax,
// looks at no byte twice, copies nothing, and returns the error texts of redis-server 7.
// Its fuzz test compares every input that it accepts with redcon, a parser of the same
// protocol.
//
// An orderly end. When its context ends, Run stops accepting, lets each connection answer
// the commands that it has read, and returns when all of their goroutines have ended.
//
// Few goroutines. On Linux, plain TCP connections are read, answered, written and closed
// by a few event loops, one for every two cores: a read and a write for a pipeline, and
// no goroutine to wake. An idle or slow client costs no goroutine and no thread. A
// session that has to wait for the store calls back when it is done. Commands that would
// block or take long run in a task queue: a bounded number of goroutines that never use
// the socket, few of them for long commands. All other connections, TLS above all, have a
// goroutine each.
//
// A client that closes its connection ends its long commands, and the rest of its batch
// once the connection is gone. A client that closes only its own side, as in
// printf ... | nc -N, still gets the replies to all others.
//
// The path of input in an event loop: epollConn.onReadable reads it. epollConn.answerFast
// passes command after command to FastSession.Fast, until it refuses one.
// readBuffer.collect makes a batch of the commands behind that. epollConn.answer calls AsyncSession.Start, which
// answers them or starts to, and epollConn.end calls AsyncSession.Finish for the rest; or
// epollConn.dispatch calls Session.Serve for a part of them, in the loop or in a task
// queue. epollConn.send writes. On the other connections conn.await collects, and
// conn.answer calls Session.Serve, which appends the replies, and writes them.
package server
