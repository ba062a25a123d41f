package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// The pause after a failure to accept, doubled from failure to failure. Out
	// of file descriptors, accepting again at once would only burn a core.
	minAcceptPause = 5 * time.Millisecond
	maxAcceptPause = time.Second
	// rejectTime bounds the farewell to a client too many: it is written in the
	// accept loop.
	rejectTime = 100 * time.Millisecond
	// sendBuffer is how much of a reply the kernel keeps for a client that does not
	// read. By itself it would take 4 MiB, which a container has to pay for.
	sendBuffer = 128 << 10
)

// keepAlive notices a peer that vanished without a word after twice as long as
// the kernel leaves it alone, as Redis does.
func keepAlive(idle time.Duration) net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: idle > 0, Idle: idle, Interval: max(time.Second, idle/3), Count: 3}
}

// listener accepts connections and runs each in a goroutine of its own.
type listener struct {
	net.Listener
	server *Server
	// ctx is what sessions get: it ends when a drain runs out of time, not when
	// it begins.
	ctx      context.Context
	cancel   context.CancelFunc
	draining atomic.Bool
	stopped  chan struct{}  // closed when draining begins
	broken   chan error     // gets the error that ended accepting; holds one
	conns    sync.WaitGroup // the goroutines of connections

	mu   sync.Mutex // guards the rest, and draining against additions to it
	open map[*conn]struct{}
	// loops have the connections that are plain TCP, where there are loops.
	loops []*eventLoop

	// waiting and long have the commands of those weights that the loops do not serve;
	// long has those of the other connections too.
	waiting, long taskQueue
	// resuming has what an AsyncSession has begun and must wait for: it is not kept back by
	// commands that were never begun.
	resuming taskQueue
}

func newListener(ctx context.Context, s *Server, ln net.Listener) *listener {
	l := &listener{
		Listener: ln,
		server:   s,
		stopped:  make(chan struct{}),
		broken:   make(chan error, 1),
		open:     make(map[*conn]struct{}),
	}
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.waiting = taskQueue{maxRunning: waitingTasks, group: &l.conns}
	l.resuming = taskQueue{maxRunning: waitingTasks, group: &l.conns}
	l.long = taskQueue{maxRunning: longTasks(), group: &l.conns}
	return l
}

// serve accepts connections until the drain, and returns when the last of them
// has ended.
func (l *listener) serve() {
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
			slog.Warn("cannot accept a connection", "error", err, "pause", pause)
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

// admit returns the connection to run, or nil if there is no room for it.
func (l *listener) admit(nc net.Conn) *conn {
	s := l.server
	if s.count.connections.Add(1) > int64(s.opts.MaxConns) {
		s.count.connections.Add(-1)
		s.count.rejected.Add(1)
		reject(nc)
		return nil
	}
	if tcp, ok := rawConn(nc).(*net.TCPConn); ok {
		// It fails only on a connection that is already gone.
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
		SetAuthenticated: c.authenticated.Store,
	}
	if !l.add(c) {
		s.count.connections.Add(-1)
		c.kill()
		return nil
	}
	s.count.total.Add(1)
	return c
}

// adopt gives a connection to a loop, and reports whether it took it.
func (l *listener) adopt(tcp *net.TCPConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining.Load() {
		return false
	}
	if len(l.loops) < loopsWanted() {
		p, err := newLoop(l)
		if err != nil {
			return false
		}
		l.loops = append(l.loops, p)
		l.conns.Go(p.run)
	}
	id := l.server.lastID.Add(1)
	return l.loops[id%int64(len(l.loops))].adopt(tcp, id)
}

// loopsWanted returns how many loops a listener has: with one for each core they
// would take each other's time, since the store has work to do as well.
func loopsWanted() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// reject tells a client, as Redis does, that there are too many. One that comes
// by TLS is not told: that would take a handshake.
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

// drain stops accepting and wakes the connections that wait for their clients,
// in this order: a client that is sent away does not get in here again.
func (l *listener) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining.Store(true)
	close(l.stopped)
	// It fails only on a listener that is closed already.
	_ = l.Close()
	for c := range l.open {
		c.interrupt()
	}
	for _, p := range l.loops {
		p.drain()
	}
}

// killAll closes the connections that are left, and returns how many.
func (l *listener) killAll() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel() // none gets the turn of another that is killed before it
	for c := range l.open {
		c.kill()
	}
	n := len(l.open)
	for _, p := range l.loops {
		n += p.killAll()
	}
	return n
}
