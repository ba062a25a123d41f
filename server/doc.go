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
// One parser. No byte from the network reaches redcon, whose parser can be made
// to crash, spin and hoard: redcon runs the connections (accepts, one goroutine
// each, closes), and a guard under it reads them. The guard knows Redis' framing
// and inline syntax and words its refusals as redis-server 7 does.
//
// An orderly end. When its context ends, Run stops accepting, lets each
// connection finish the batch it is answering, and returns when all of their
// goroutines have ended.
//
// The way of one batch: conn.Read waits and has input.collect cut commands out
// of what arrived, redcon calls Server.answer, Session.Serve appends the
// replies, conn.Write sends them.
package server
