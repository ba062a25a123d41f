// Package server listens: it runs connections, reads the commands that arrive
// on them, has a Session answer them, and writes the replies.
//
// What it promises:
//
// Order and one write. All complete commands that have arrived on a connection
// are answered together, in order, and their replies leave in one write. What
// follows a command that quits is not run.
//
// Bounds. A connection costs a bounded amount of memory and time whatever is
// sent: lengths are checked before anything is kept, a half-sent command, a
// silent client and one that does not read its replies are cut off, and there
// are never more than Options.MaxConns connections. A large reply is written before
// the next command of its batch is served, and all connections together hold
// Options.MaxBuffered bytes at most: beyond that those that hold most are closed. A panic
// in a session ends its connection, not the process.
//
// One parser, bounded by construction: it knows Redis' framing and inline
// syntax, looks at no byte twice, copies nothing, and words its refusals as
// redis-server 7 does. Its fuzz test holds it to redcon, a parser of the same
// protocol, in everything it lets through.
//
// An orderly end. When its context ends, Run stops accepting, lets each
// connection answer the commands that it has read, and returns when all of their
// goroutines have ended.
//
// Few goroutines. On Linux plain TCP connections are read, answered, written and closed
// by a few loops, one for every two cores: a read and a write for a pipeline, and no
// goroutine to be woken. No client costs a goroutine or a thread by what it leaves
// undone. A session that has to wait for the store calls back when it is done. Commands
// that would block, or take long, run in a lane: a bounded number of goroutines that
// never use the socket, and of which the long ones are few. Everything else, TLS above
// all, has a goroutine for each connection.
//
// A client that hangs up ends its long commands, and the rest of its batch once its
// side is gone. One that only ends its own side, as printf ... | nc -N does, still gets
// the replies to all others.
//
// The way of one batch in a loop: epollConn.onReadable has input.collect cut commands
// out of what arrived. epollConn.answer has AsyncSession.Begin answer them or begin
// to, and epollConn.end has End do the rest; or epollConn.dispatch has Session.Serve
// answer a part of them, there or in a lane. epollConn.send writes. Elsewhere conn.await
// collects, and conn.answer has Session.Serve append the replies and writes them.
package server
