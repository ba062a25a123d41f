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
// are never more than Options.MaxConns connections. A panic in a session ends
// its connection, not the process.
//
// One parser, bounded by construction: it knows Redis' framing and inline
// syntax, looks at no byte twice, copies nothing, and words its refusals as
// redis-server 7 does. Its fuzz test holds it to redcon, a parser of the same
// protocol, in everything it lets through.
//
// An orderly end. When its context ends, Run stops accepting, lets each
// connection finish the batch it is answering, and returns when all of their
// goroutines have ended.
//
// Few goroutines. On Linux plain TCP connections are read and answered by a few
// loops, one for every two cores: a read and a write for a pipeline, and no
// goroutine to be woken. A session that has to wait says when it is done, one that
// would block, and a client that does not read, get a goroutine for as long.
// Everything else, TLS above all, has a goroutine for each connection.
//
// The way of one batch in a loop: polled.receive has input.collect cut commands
// out of what arrived, polled.answer has AsyncSession.Begin answer them or begin
// to, polled.end has End do the rest, and polled.send writes. Elsewhere conn.await
// collects, and conn.answer has Session.Serve append the replies and writes them.
package server
