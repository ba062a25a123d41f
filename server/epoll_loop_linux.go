package server

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// loopEvents is the maximum number of connections handled in a round: between two
	// readings of the clock, and before replies are sent.
	loopEvents = 128
	// sweepEvery is the interval at which connections are checked for deadlines.
	sweepEvery = 250 * time.Millisecond
	// idleWait is how long a loop without connections waits: each wake of an idle process
	// wakes some of its threads.
	idleWait = time.Minute
)

// eventLoop reads, answers and writes many connections in one goroutine. A session that
// has to wait is left alone until it is done; one that would block runs in a task queue.
// The loop also reads the sockets of connections to other servers. No other goroutine uses
// the descriptors of the loop and of its connections, except in post.
type eventLoop struct {
	epoll   int
	wakeup  int // an eventfd
	conns   map[int32]*epollConn
	sockets map[int32]*Socket
	timers  timerHeap
	swept   time.Time
	trimmed time.Time // when the buffers were last trimmed
	buffers bufferCache
	discard []byte // buffer for the input of closing connections
	// unsent are the connections with a reply to send. They are sent at the end of a
	// round, so that a client wakes up to many replies. begun is the server whose sessions
	// have started in this round, or nil.
	unsent, spare []*epollConn
	begun         *Server
	bulk          bulk
	stopping      bool // the loop ends once it has no connection

	mu     sync.Mutex // guards the fields below, and that wakeup is open
	posted []posted   // by other goroutines
	asleep bool       // a call that is posted must wake the loop, which waits or did until now
	ended  bool       // the descriptors are closed
	open   map[*epollConn]struct{}
}

// posted is a call for a connection, made by another goroutine.
type posted struct {
	c    *epollConn
	what func(*epollConn)
	seq  uint64
}

func newLoop() (*eventLoop, error) {
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
		epoll: epoll, wakeup: wakeup, discard: make([]byte, smallBuffer),
		conns: map[int32]*epollConn{}, sockets: map[int32]*Socket{}, open: map[*epollConn]struct{}{},
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

// post makes the loop's goroutine call what with c. It reports false if the loop has ended.
// The mutex is held during the write, so that the descriptor cannot have become that of
// another file.
func (p *eventLoop) post(c *epollConn, seq uint64, what func(*epollConn)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	p.posted = append(p.posted, posted{c, what, seq})
	if p.asleep {
		p.asleep = false
		one := [8]byte{1}
		_, _ = writeNow(p.wakeup, one[:])
	}
	return true
}

// run runs the loop until it has been stopped and has no connection.
func (p *eventLoop) run() {
	defer p.end()
	var events [loopEvents]unix.EpollEvent
	var posts []posted
	for !p.over() {
		n, err := epollWait(p.epoll, events[:], p.timeout(p.sleep()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			panic(err) // the descriptor is owned by this loop
		}
		for i := range max(0, n) {
			p.ready(&events[i])
		}
		p.expire()
		posts = p.take(posts[:0])
		p.callPosted(posts)
		p.flush()
		p.serveBulk()
	}
}

// callPosted makes the calls that were posted.
func (p *eventLoop) callPosted(posts []posted) {
	for i := range posts {
		if q := &posts[i]; q.c == nil || q.seq == 0 || q.seq == q.c.seq {
			q.what(q.c)
		}
		if i%loopEvents == loopEvents-1 {
			p.flush()
		}
	}
	clear(posts)
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
	if p.begun != nil && p.begun.opts.Flush != nil {
		p.begun.opts.Flush()
	}
	p.begun = nil
}

// hasBegun records that a session of a server has started a request.
func (p *eventLoop) hasBegun(s *Server) {
	if p.begun != s {
		p.begin()
		p.begun = s
	}
}

// sleep reports whether there is work to do now. Otherwise a call that is posted wakes the
// loop from now on.
func (p *eventLoop) sleep() (busy bool) {
	if len(p.unsent)+len(p.bulk.unsent) > 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asleep = len(p.posted) == 0
	return !p.asleep
}

// take returns the posted calls. Calls that are posted from now on need not wake the loop.
func (p *eventLoop) take(into []posted) []posted {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asleep = false
	into, p.posted = p.posted, into
	return into
}

func (p *eventLoop) over() bool {
	return p.stopping && len(p.conns) == 0 && len(p.sockets) == 0
}

// timeout returns how long to wait for events, in ms.
func (p *eventLoop) timeout(busy bool) int {
	if busy {
		return 0
	}
	wait := idleWait
	if len(p.conns) > 0 {
		wait = sweepEvery
	}
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

func (p *eventLoop) ready(e *unix.EpollEvent) {
	c := p.conns[e.Fd]
	switch {
	case c == nil: // nor is there a socket for wakeup: run takes the posted calls
		if s := p.sockets[e.Fd]; s != nil {
			s.onEvent(e.Events)
		}
	case c.delays():
		p.bulk.events = append(p.bulk.events, bulkEvent{c, e.Events})
	default:
		c.onEvent(e.Events)
	}
}

// duplicate returns a descriptor of a connection's socket, which the runtime does not know.
func duplicate(tcp *net.TCPConn) (fd int, err error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return -1, err
	}
	refused := raw.Control(func(own uintptr) { fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(err, refused)
}

// adopt takes over a connection of a listener, or returns false.
func (p *eventLoop) adopt(l *listener, tcp *net.TCPConn, id int64) bool {
	fd, err := duplicate(tcp)
	if err != nil {
		return false
	}
	c := newEpollConn(p, l, fd)
	c.ctx, c.cancel = context.WithCancel(l.ctx)
	c.peer = Peer{ID: id, Addr: tcp.RemoteAddr(), LocalAddr: tcp.LocalAddr(), Kill: c.kill, SetAuthenticated: c.authentication.set}
	_ = tcp.Close()
	l.conns.Add(1)
	p.mu.Lock()
	p.open[c] = struct{}{}
	p.mu.Unlock()
	p.post(c, 0, (*epollConn).begin)
	return true
}

// drain closes the idle connections of a listener, and the others when they have answered.
// The listener must be draining.
func (p *eventLoop) drain(l *listener) {
	p.post(nil, 0, func(*epollConn) {
		for _, c := range p.conns {
			switch {
			case c.listener != l || c.state != stateReading:
			case c.undelivered():
				c.closeFor(errDraining)
			default:
				c.close()
			}
		}
	})
}

// killAll closes all connections of a listener and returns how many there were. It is safe
// for concurrent use.
func (p *eventLoop) killAll(l *listener) (left int) {
	p.mu.Lock()
	open := slices.Collect(maps.Keys(p.open))
	p.mu.Unlock()
	for _, c := range open {
		if c.listener == l {
			c.kill()
			left++
		}
	}
	return left
}

// stop closes all connections and sockets, and makes the loop end. It is safe for concurrent
// use.
func (p *eventLoop) stop() {
	p.post(nil, 0, func(*epollConn) {
		p.stopping = true
		for _, c := range p.conns {
			c.onKill()
		}
		for _, s := range p.sockets {
			s.HangUp()
		}
	})
}
