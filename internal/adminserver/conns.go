package adminserver

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// conns bounds the connections of a server. At the bound, a new connection closes
// the one that has waited longest for a request; if all are active, it closes the one
// that has been active longest. Clients that hold connections must not lock out a probe,
// which is answered within milliseconds.
type conns struct {
	most int

	mu  sync.Mutex // guards all
	all map[net.Conn]activity
}

// activity is the state of one connection.
type activity struct {
	state http.ConnState
	since time.Time
}

func newConns(most int) *conns {
	return &conns{most: most, all: map[net.Conn]activity{}}
}

// changed is the ConnState hook of a server. The server calls it for a new connection
// before it accepts the next one.
func (c *conns) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch _, known := c.all[conn]; {
	case state == http.StateClosed || state == http.StateHijacked:
		delete(c.all, conn)
		return
	case state == http.StateNew:
		c.makeRoom()
	case !known: // already closed
		return
	}
	c.all[conn] = activity{state, time.Now()}
}

// makeRoom closes a connection if the bound is reached. The caller holds mu.
func (c *conns) makeRoom() {
	if len(c.all) < c.most {
		return
	}
	var victim net.Conn
	for conn, is := range c.all {
		if victim == nil || is.before(c.all[victim]) {
			victim = conn
		}
	}
	delete(c.all, victim)
	_ = victim.Close()
}

// before reports whether a is closed before b.
func (a activity) before(b activity) bool {
	if working := a.state == http.StateActive; working != (b.state == http.StateActive) {
		return !working
	}
	return a.since.Before(b.since)
}
