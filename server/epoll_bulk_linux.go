package server

import (
	"slices"
	"time"
)

// bulkTime is how long a round serves connections that move much at once, each of which
// takes some 100 us. The others are served first, and again after that time.
const bulkTime = time.Millisecond

// bulk has the work of a round that is left for its end.
type bulk struct {
	unsent []*epollConn // with a large reply, or one of many to a large input
	events []bulkEvent  // of connections with large inputs or replies
	turn   int          // where the last round began
}

// bulkEvent is what epoll reports of a connection.
type bulkEvent struct {
	c      *epollConn
	events uint32
}

// delays reports whether an event is left for the end of the round.
func (c *epollConn) delays() bool {
	return c.bulk && (c.state == stateReading || c.state == stateWriting)
}

// serveBulk does a part of that work, the replies first: they take memory. Epoll reports
// the events that are left over again; to begin elsewhere each time is fair to all.
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
