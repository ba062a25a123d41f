package server

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// The pause after a failure to accept, doubled with each failure. Without a pause,
	// running out of file descriptors would keep a core busy.
	minAcceptPause = 5 * time.Millisecond
	maxAcceptPause = time.Second
	// rejectTime bounds the write of the error to a client over MaxConns: it happens in
	// the accept loop.
	rejectTime = 100 * time.Millisecond
	// sendBuffer is the size of the kernel's buffer for a client that does not read. The
	// kernel's own default grows to 4 MiB, which counts against a container's memory.
	sendBuffer = 128 << 10
)

// keepAlive detects a peer that vanished silently after twice idle, as Redis does.
func keepAlive(idle time.Duration) net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: idle > 0, Idle: idle, Interval: max(time.Second, idle/3), Count: 3}
}

// listener accepts connections and runs each in a goroutine of its own.
type listener struct {
	net.Listener
	server *Server
	// ctx is the parent of the sessions' contexts: it ends when a drain runs out of time,
	// not when it begins.
	ctx      context.Context
	cancel   context.CancelFunc
	draining atomic.Bool
	stopped  chan struct{}  // closed when draining begins
	broken   chan error     // receives the error that ended accepting; capacity one
	conns    sync.WaitGroup // the connections, and the goroutines of their tasks
	// loops serve the plain TCP connections, on systems that have event loops. They are those
	// of the options, or serve this listener alone.
	loops *Loops

	mu   sync.Mutex // guards open, and orders draining with the adoption of connections
	open map[*conn]struct{}

	// waiting and long run the commands of these weights that the event loops do not
	// serve; long also runs those of the other connections.
	waiting, long taskQueue
	// resuming finishes the commands that an AsyncSession has started and must block for:
	// they do not queue behind commands that were never started.
	resuming taskQueue
}

func newListener(ctx context.Context, s *Server, ln net.Listener) *listener {
	l := &listener{
		Listener: ln,
		server:   s,
		stopped:  make(chan struct{}),
		broken:   make(chan error, 1),
		open:     make(map[*conn]struct{}),
		loops:    s.opts.Loops,
	}
	if l.loops == nil {
		var err error
		if l.loops, err = NewLoops(0); err != nil { // each connection has a goroutine
			s.opts.Log.Warn("cannot use event loops", "error", err)
			l.loops = &Loops{}
		}
	}
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.waiting = taskQueue{maxRunning: waitingTasks, group: &l.conns}
	l.resuming = taskQueue{maxRunning: waitingTasks, group: &l.conns}
	l.long = taskQueue{maxRunning: longTasks(), group: &l.conns}
	return l
}

// serve accepts connections until the drain, and returns when the last of them has ended.
func (l *listener) serve() {
	if l.loops != l.server.opts.Loops {
		var loops sync.WaitGroup
		defer loops.Wait()
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		loops.Go(func() { _ = l.loops.Run(ctx) })
	}
	pause := minAcceptPause
	for !l.draining.Load() {
		nc, err := l.Listener.Accept()
		switch {
		case err == nil:
			pause = minAcceptPause
			if c := l.admit(nc); c != nil {
				l.conns.Go(c.run)
			}
		case l.draining.Load():
		case errors.Is(err, net.ErrClosed):
			l.broken <- err
			<-l.stopped
		default:
			l.server.count.acceptErrors.Add(1)
			l.server.opts.Log.Warn("cannot accept a connection", "error", err, "pause", pause)
			l.wait(pause)
			pause = min(2*pause, maxAcceptPause)
		}
	}
	l.conns.Wait()
}

func (l *listener) wait(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.stopped:
	}
}

// admit returns the connection to run, or nil if there are too many.
func (l *listener) admit(nc net.Conn) *conn {
	s := l.server
	if s.count.connections.Add(1) > int64(s.opts.MaxConns) {
		s.count.connections.Add(-1)
		s.count.rejected.Add(1)
		reject(nc)
		return nil
	}
	if tcp, ok := rawConn(nc).(*net.TCPConn); ok {
		// An error means that the connection is already gone.
		_ = tcp.SetKeepAliveConfig(keepAlive(s.opts.KeepAlive))
		_ = tcp.SetWriteBuffer(sendBuffer)
		if rawConn(nc) == nc && l.adopt(tcp) {
			s.count.total.Add(1)
			return nil
		}
	}
	c := newConn(l, nc)
	c.ctx, c.cancel = context.WithCancel(l.ctx)
	c.peer = Peer{
		ID:               s.lastID.Add(1),
		Addr:             nc.RemoteAddr(),
		LocalAddr:        nc.LocalAddr(),
		Kill:             c.kill,
		SetAuthenticated: c.authentication.set,
	}
	if !l.add(c) {
		s.count.connections.Add(-1)
		c.kill()
		return nil
	}
	s.count.total.Add(1)
	return c
}

// adopt passes a connection to an event loop, and reports whether the loop took it.
func (l *listener) adopt(tcp *net.TCPConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining.Load() {
		return false
	}
	return l.loops.adopt(l, tcp, l.server.lastID.Add(1))
}

// reject sends a client the error for too many connections, as Redis does. A TLS client
// gets none: that would take a handshake.
func reject(nc net.Conn) {
	if rawConn(nc) == nc && nc.SetWriteDeadline(time.Now().Add(rejectTime)) == nil {
		_, _ = nc.Write([]byte("-ERR max number of clients reached\r\n"))
	}
	_ = rawConn(nc).Close()
}

func (l *listener) add(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining.Load() {
		return false
	}
	l.open[c] = struct{}{}
	return true
}

func (l *listener) remove(c *conn) {
	l.server.count.connections.Add(-1)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

// drain stops accepting and wakes the connections that wait for their clients, in this
// order: a client whose connection is closed cannot connect here again.
func (l *listener) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining.Store(true)
	close(l.stopped)
	// An error means that the listener is already closed.
	_ = l.Close()
	for c := range l.open {
		c.interrupt()
	}
	for _, p := range l.loops.loops {
		p.drain(l)
	}
}

// killAll closes the remaining connections, and returns how many there were.
func (l *listener) killAll() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel() // no connection gets the turn of one that was killed before it
	for c := range l.open {
		c.kill()
	}
	n := len(l.open)
	for _, p := range l.loops.loops {
		n += p.killAll(l)
	}
	return n
}
