package server

import (
	"slices"
	"time"
)

// bulkTime is the time in which a round serves connections that move much data at once,
// each of which takes about 100 us. The other connections are served first, and again
// after bulkTime.
const bulkTime = time.Millisecond

// bulk holds the work that is deferred to the end of a round.
type bulk struct {
	unsent []*epollConn // with a large reply, or one of many to a large input
	events []bulkEvent  // of connections with large inputs or replies
	turn   int          // where the last round began
}

// bulkEvent is an event that epoll reports for a connection.
type bulkEvent struct {
	c      *epollConn
	events uint32
}

// delays reports whether an event is deferred to the end of the round. That of a new connection is, so that those of
// clients that connect, send many commands and leave hold up no others.
func (c *epollConn) delays() bool {
	return (c.bulk || c.fresh) && (c.state == stateReading || c.state == stateWriting)
}

// serveBulk does a part of the deferred work, the replies first, because they hold
// memory. Epoll reports the remaining events again. Each round begins at another
// connection, to be fair to all.
func (p *eventLoop) serveBulk() {
	b := &p.bulk
	replies, events := len(b.unsent), len(b.events)
	if replies+events == 0 {
		return
	}
	b.turn++
	begun, done := time.Now(), 0
	for ; done < replies+events && (done == 0 || time.Since(begun) < bulkTime); done++ {
		if done < replies {
			b.unsent[done].send()
			continue
		}
		e := b.events[(b.turn+done)%events]
		e.c.onEvent(e.events)
	}
	b.unsent = slices.Delete(b.unsent, 0, min(done, replies))
	clear(b.events)
	b.events = b.events[:0]
	p.begin()
}
