package server

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// loopEvents is the maximum number of connections handled in a round: between two
	// readings of the clock, and before replies are sent.
	loopEvents = 128
	// sweepEvery is the interval at which connections are checked for deadlines.
	sweepEvery = 250 * time.Millisecond
)

// eventLoop reads, answers and writes many connections in one goroutine. A session that
// has to wait is left alone until it is done; one that would block runs in a task queue.
// No other goroutine uses the descriptors of the loop and of its connections, except in
// post.
type eventLoop struct {
	server   *Server
	listener *listener
	epoll    int
	wakeup   int // an eventfd
	conns    map[int32]*epollConn
	timers   timerHeap
	swept    time.Time
	trimmed  time.Time // when the buffers were last trimmed
	buffers  bufferCache
	discard  []byte // buffer for the input of closing connections
	// unsent are the connections with a reply to send. They are sent at the end of a
	// round, so that a client wakes up to many replies. begun reports whether sessions
	// have started in this round.
	unsent, spare []*epollConn
	begun         bool
	bulk          bulk

	mu     sync.Mutex // guards the fields below, and that wakeup is open
	posted []posted   // by other goroutines
	asleep bool       // the loop waits, and must be woken
	ended  bool       // the descriptors are closed
	open   map[*epollConn]struct{}

	draining atomic.Bool
}

// posted is a call for a connection, made by another goroutine.
type posted struct {
	c    *epollConn
	what func(*epollConn)
	seq  uint64
}

func newLoop(l *listener) (*eventLoop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	wakeup, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(epoll)
		return nil, err
	}
	p := &eventLoop{
		server: l.server, listener: l, epoll: epoll, wakeup: wakeup, discard: make([]byte, smallBuffer),
		conns: map[int32]*epollConn{}, open: map[*epollConn]struct{}{},
	}
	// An edge is reported for each write, so that the count need not be read.
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wakeup, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(wakeup)}); err != nil {
		p.end()
		return nil, err
	}
	return p, nil
}

// end closes the descriptors.
func (p *eventLoop) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	_ = unix.Close(p.epoll)
	_ = unix.Close(p.wakeup)
}

// post makes the loop's goroutine call what with c, unless the loop has ended. The mutex
// is held during the write, so that the descriptor cannot have become that of another
// file.
func (p *eventLoop) post(c *epollConn, seq uint64, what func(*epollConn)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.posted = append(p.posted, posted{c, what, seq})
	if p.asleep {
		p.asleep = false
		one := [8]byte{1}
		_, _ = writeNow(p.wakeup, one[:])
	}
}

// run runs the loop until it has drained.
func (p *eventLoop) run() {
	defer p.end()
	var events [loopEvents]unix.EpollEvent
	var posts []posted
	for {
		posts = p.take(posts[:0])
		for i := range posts {
			if q := &posts[i]; q.c == nil || q.seq == 0 || q.seq == q.c.seq {
				q.what(q.c)
			}
			if i%loopEvents == loopEvents-1 {
				p.flush()
			}
		}
		clear(posts)
		if p.over() {
			return
		}
		n, err := epollWait(p.epoll, events[:], p.timeout(len(posts)+len(p.unsent)+len(p.bulk.unsent) > 0))
		p.awake()
		if err != nil && !errors.Is(err, unix.EINTR) {
			panic(err) // the descriptor is owned by this loop
		}
		for i := range max(0, n) {
			p.ready(&events[i])
		}
		p.expire()
		p.flush()
		p.serveBulk()
	}
}

// flush ends a round: started requests go to the store, replies go to the clients.
// Replies to later input on their connections wait for the next round, as other
// connections may have to be served.
func (p *eventLoop) flush() {
	p.begin()
	if len(p.unsent) == 0 {
		return
	}
	round := p.unsent
	p.unsent, p.spare = p.spare[:0], round
	for _, c := range round {
		c.send()
	}
	clear(round)
	p.begin()
}

// begin sends the requests that sessions have started to the store.
func (p *eventLoop) begin() {
	if p.begun && p.server.opts.Flush != nil {
		p.server.opts.Flush()
	}
	p.begun = false
}

// take returns the posted calls, and marks the loop asleep if there are none.
func (p *eventLoop) take(into []posted) []posted {
	p.mu.Lock()
	defer p.mu.Unlock()
	into, p.posted = p.posted, into
	p.asleep = len(into) == 0
	return into
}

func (p *eventLoop) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draining.Load() && len(p.open) == 0
}

// timeout returns how long to wait for events, in ms.
func (p *eventLoop) timeout(busy bool) int {
	if busy {
		return 0
	}
	wait := sweepEvery
	if at := p.timers.next(); !at.IsZero() {
		wait = min(wait, max(0, time.Until(at))+time.Millisecond-1)
	}
	return int(wait / time.Millisecond)
}

// expire ends the waits whose deadline has passed, and sweeps the connections every
// sweepEvery.
func (p *eventLoop) expire() {
	now := time.Now()
	for c := p.timers.pop(now); c != nil; c = p.timers.pop(now) {
		c.expired(now)
	}
	if now.Sub(p.swept) < sweepEvery {
		return
	}
	p.swept = now
	if now.Sub(p.trimmed) >= quietTime {
		p.trimmed = now
		p.buffers.trim()
	}
	for _, c := range p.conns {
		if c.state == stateReading {
			c.sweep(now)
		}
	}
}

// awake records that the loop will look at the posted calls without being woken.
func (p *eventLoop) awake() {
	p.mu.Lock()
	p.asleep = false
	p.mu.Unlock()
}

func (p *eventLoop) ready(e *unix.EpollEvent) {
	c := p.conns[e.Fd] // nil for wakeup, after which run takes the posted calls
	switch {
	case c == nil:
	case c.delays():
		p.bulk.events = append(p.bulk.events, bulkEvent{c, e.Events})
	default:
		c.onEvent(e.Events)
	}
}

// adopt takes over a connection, or returns false.
func (p *eventLoop) adopt(tcp *net.TCPConn, id int64) bool {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	fd := -1
	_ = raw.Control(func(own uintptr) { fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) })
	if err != nil || fd < 0 {
		return false
	}
	c := newEpollConn(p, fd)
	c.ctx, c.cancel = context.WithCancel(p.listener.ctx)
	c.peer = Peer{ID: id, Addr: tcp.RemoteAddr(), LocalAddr: tcp.LocalAddr(), Kill: c.kill, SetAuthenticated: c.authentication.set}
	_ = tcp.Close()
	p.mu.Lock()
	p.open[c] = struct{}{}
	p.mu.Unlock()
	p.post(c, 0, (*epollConn).begin)
	return true
}

// drain closes the idle connections, and the others when they have answered. Afterwards
// no connection is adopted.
func (p *eventLoop) drain() {
	p.draining.Store(true)
	p.post(nil, 0, func(*epollConn) {
		for _, c := range p.conns {
			switch {
			case c.state != stateReading:
			case c.undelivered():
				c.closeFor(errDraining)
			default:
				c.close()
			}
		}
	})
}

// killAll closes all connections and returns how many there were. It is safe for
// concurrent use.
func (p *eventLoop) killAll() int {
	p.mu.Lock()
	left := slices.Collect(maps.Keys(p.open))
	p.mu.Unlock()
	for _, c := range left {
		c.kill()
	}
	return len(left)
}
