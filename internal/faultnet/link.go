package faultnet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Link forwards connections to a server. Its methods may be called from any
// goroutine, and what they change holds for open connections too.
type Link struct {
	target   string
	listener *net.TCPListener
	closed   chan struct{}
	ending   sync.Once
	running  sync.WaitGroup

	mutex  sync.Mutex
	delay  time.Duration
	resets float64
	open   chan struct{} // is closed while the link delivers
	conns  map[*net.TCPConn]bool
}

// Listen starts a link to a server, on a free port of the loopback interface.
func Listen(target string) (*Link, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("listen for a link to %s: %w", target, err)
	}
	l := &Link{
		target: target, listener: listener, closed: make(chan struct{}),
		open: make(chan struct{}), conns: map[*net.TCPConn]bool{},
	}
	close(l.open)
	l.running.Go(l.accept)
	return l, nil
}

// Addr is where clients connect.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Port is the port of Addr.
func (l *Link) Port() int { return l.listener.Addr().(*net.TCPAddr).Port }

// Delay lets everything that the server sends from now on arrive later. As on a
// long way, what is sent at once arrives at once: delays do not add up.
func (l *Link) Delay(by time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.delay = by
}

// Reset lets a share of the segments, of both directions, be lost together with
// their connection: both ends get a reset. Of a lost request the server has heard
// nothing, of a lost reply it has done what was asked.
func (l *Link) Reset(share float64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.resets = share
}

// Block delivers nothing any more, neither bytes nor the end of a connection.
// Connections are still taken, by the kernel as it were, and not answered.
func (l *Link) Block() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	select {
	case <-l.open:
		l.open = make(chan struct{})
	default:
	}
}

// Unblock delivers what was held back, and whatever comes.
func (l *Link) Unblock() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	select {
	case <-l.open:
	default:
		close(l.open)
	}
}

// Close ends the link and every connection through it. Closing it again does
// nothing.
func (l *Link) Close() error {
	var err error
	l.ending.Do(func() {
		err = l.listener.Close()
		close(l.closed)
		l.mutex.Lock()
		for conn := range l.conns {
			_ = conn.Close()
		}
		l.mutex.Unlock()
		l.running.Wait()
	})
	return err
}

// accept takes connections until the link is closed.
func (l *Link) accept() {
	for {
		client, err := l.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // that client is gone again
		}
		if l.keep(client) {
			l.running.Go(func() { l.connect(client) })
		}
	}
}

// connect forwards one connection in both directions, until one of its ends is
// closed.
func (l *Link) connect(client *net.TCPConn) {
	defer l.drop(client)
	if !l.pass() {
		return
	}
	conn, err := net.Dial("tcp", l.target)
	if err != nil {
		_ = client.SetLinger(0) // refused, as the server would
		return
	}
	server := conn.(*net.TCPConn)
	if !l.keep(server) {
		return
	}
	defer l.drop(server)
	var both sync.WaitGroup
	both.Go(func() { l.carry(client, server, false) })
	both.Go(func() { l.carry(server, client, true) })
	both.Wait()
}

// keep remembers a connection, and closes it at once if the link is closed.
func (l *Link) keep(conn *net.TCPConn) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	select {
	case <-l.closed:
		_ = conn.Close()
		return false
	default:
		l.conns[conn] = true
		return true
	}
}

func (l *Link) drop(conn *net.TCPConn) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.conns, conn)
	_ = conn.Close()
}

// pass waits until the link delivers, and reports whether it still does at all.
func (l *Link) pass() bool {
	l.mutex.Lock()
	open := l.open
	l.mutex.Unlock()
	select {
	case <-open:
		return true
	case <-l.closed:
		return false
	}
}

// unlucky draws whether a segment is lost.
func (l *Link) unlucky() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return rand.Float64() < l.resets
}

// arrival is when something that the server sends now arrives.
func (l *Link) arrival() time.Time {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return time.Now().Add(l.delay)
}
