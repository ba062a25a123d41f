package main

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// adminConns bounds the connections of a server. At the bound a new connection ends the one
// that has waited longest for a request or, where all are at work, that has worked longest:
// clients that hold connections must not keep a probe away, which is answered within
// milliseconds.
type adminConns struct {
	most int

	mu  sync.Mutex // guards all
	all map[net.Conn]adminConn
}

// adminConn is the state of a connection.
type adminConn struct {
	state http.ConnState
	since time.Time
}

func newAdminConns(most int) *adminConns {
	return &adminConns{most: most, all: map[net.Conn]adminConn{}}
}

// changed is the ConnState of a server, which calls it for a new connection before it accepts
// the next one.
func (c *adminConns) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch _, known := c.all[conn]; {
	case state == http.StateClosed || state == http.StateHijacked:
		delete(c.all, conn)
		return
	case state == http.StateNew:
		c.makeRoom()
	case !known: // it has been ended
		return
	}
	c.all[conn] = adminConn{state, time.Now()}
}

// makeRoom ends a connection if there are as many as there may be. The caller holds mu.
func (c *adminConns) makeRoom() {
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

// before reports whether a connection is ended before another one.
func (a adminConn) before(b adminConn) bool {
	if working := a.state == http.StateActive; working != (b.state == http.StateActive) {
		return !working
	}
	return a.since.Before(b.since)
}
