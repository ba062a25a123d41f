package faultnet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Link forwards connections to a server. Its methods may be called from any goroutine,
// and their changes apply to open connections too.
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

// Addr is the address for clients.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Port is the port of Addr.
func (l *Link) Port() int { return l.listener.Addr().(*net.TCPAddr).Port }

// Delay delays all bytes that the server sends from now on. As on a long line, bytes sent
// together arrive together: delays do not add up.
func (l *Link) Delay(by time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.delay = by
}

// Reset drops a share of the segments, of both directions, together with their
// connection: both ends get a reset. The server has not received a lost request, and has
// executed the request of a lost reply.
func (l *Link) Reset(share float64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.resets = share
}

// Block stops all delivery, of bytes and of the end of a connection. The link still
// accepts connections, as the kernel would, and does not answer them.
func (l *Link) Block() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	select {
	case <-l.open:
		l.open = make(chan struct{})
	default:
	}
}

// Unblock delivers the held bytes, and all later ones.
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

// accept accepts connections until the link is closed.
func (l *Link) accept() {
	for {
		client, err := l.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client has gone
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
		_ = client.SetLinger(0) // a reset, as from the server
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

// keep registers a connection, and closes it at once if the link is closed.
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

// pass waits until the link delivers, and reports false if it is closed.
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

// unlucky decides at random whether a segment is lost.
func (l *Link) unlucky() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return rand.Float64() < l.resets
}

// arrival returns the arrival time of bytes that the server sends now.
func (l *Link) arrival() time.Time {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return time.Now().Add(l.delay)
}
