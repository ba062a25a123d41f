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
	// loopEvents is how many connections are looked at in a round: between two looks
	// at the clock, and before replies are sent.
	loopEvents = 128
	// sweepEvery is how often connections are looked at that keep us waiting.
	sweepEvery = 250 * time.Millisecond
)

// loop reads and answers many connections in one goroutine. A session that has to
// wait is left alone until it is done; one that would block gets a goroutine for
// as long as it does.
type loop struct {
	server   *Server
	epoll    int
	wakeup   int // an eventfd
	conns    map[int32]*polled
	expiring expiries // of the connections whose sessions wait
	swept    time.Time
	// unsent are the connections with a reply to send. They are sent at the end of a
	// round, so that clients wake up to many; begun says that sessions have begun
	// in this round.
	unsent, spare []*polled
	begun         bool

	mu     sync.Mutex // guards what follows
	posted []posted   // by other goroutines
	asleep bool       // the loop waits, and must be woken
	open   map[*polled]struct{}

	draining atomic.Bool
}

// posted is what another goroutine has to say of a connection.
type posted struct {
	c    *polled
	what func(*polled)
	seq  uint64
}

// polled is a connection of a loop. What is not said otherwise belongs to the
// loop's goroutine.
type polled struct {
	loop     *loop
	listener *listener
	fd       int
	peer     Peer
	session  Session
	async    AsyncSession // session, if it is one
	ctx      context.Context
	cancel   context.CancelFunc
	member   atomic.Bool // has authenticated
	// retires is when the connection is old enough to be closed; zero is never.
	retires time.Time

	in    input
	since time.Time
	batch *batch
	// seq numbers what the session is asked: late words about an earlier one are
	// not listened to.
	seq   uint64
	state polledState
	muted bool // epoll does not tell of input
	// arrived is since when input has been waiting for the session to be done with
	// what came before.
	arrived time.Time
	quit    bool // ends with what it is doing
	done    func(token uint64)

	mu   sync.Mutex // guards gone
	gone bool       // the descriptor is closed
}

type polledState uint8

const (
	stateReading  polledState = iota
	stateWaiting              // for its session
	stateReplying             // until the round ends
	stateAway                 // with a goroutine of its own
)

func newLoop(s *Server) (*loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	wakeup, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(epoll)
		return nil, err
	}
	p := &loop{server: s, epoll: epoll, wakeup: wakeup, conns: map[int32]*polled{}, open: map[*polled]struct{}{}}
	return p, unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wakeup, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wakeup)})
}

// post has the loop's goroutine call what with c.
func (p *loop) post(c *polled, seq uint64, what func(*polled)) {
	p.mu.Lock()
	p.posted = append(p.posted, posted{c, what, seq})
	wake := p.asleep
	p.asleep = false
	p.mu.Unlock()
	if wake {
		one := [8]byte{1}
		_, _ = unix.Write(p.wakeup, one[:])
	}
}

// run runs the loop until it has drained.
func (p *loop) run() {
	defer func() { _ = unix.Close(p.epoll); _ = unix.Close(p.wakeup) }()
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
		n, err := unix.EpollWait(p.epoll, events[:], p.timeout(len(posts) > 0))
		p.awake()
		if err != nil && !errors.Is(err, unix.EINTR) {
			panic(err) // the descriptor is ours
		}
		for i := range max(0, n) {
			p.ready(&events[i])
		}
		p.expire()
		p.flush()
	}
}

// flush ends a round: the store gets what was begun, the clients what is answered.
func (p *loop) flush() {
	for {
		if p.begun && p.server.opts.Flush != nil {
			p.server.opts.Flush()
		}
		p.begun = false
		if len(p.unsent) == 0 {
			return
		}
		round := p.unsent
		p.unsent, p.spare = p.spare[:0], round
		for _, c := range round {
			c.send()
		}
		clear(round)
	}
}

// take takes what was posted, and puts the loop to sleep if there is nothing.
func (p *loop) take(into []posted) []posted {
	p.mu.Lock()
	defer p.mu.Unlock()
	into, p.posted = p.posted, into
	p.asleep = len(into) == 0
	return into
}

func (p *loop) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draining.Load() && len(p.open) == 0
}

// timeout returns how long to wait for events, in ms.
func (p *loop) timeout(busy bool) int {
	if busy {
		return 0
	}
	e := p.expiring.first()
	for e != nil && e.c.seq != e.seq {
		p.expiring.drop()
		e = p.expiring.first()
	}
	wait := sweepEvery
	if e != nil {
		wait = min(wait, max(0, time.Until(e.at))+time.Millisecond-1)
	}
	return int(wait / time.Millisecond)
}

// expire ends the waits that have lasted too long, and looks at who keeps us
// waiting now and then.
func (p *loop) expire() {
	now := time.Now()
	for e := p.expiring.first(); e != nil; e = p.expiring.first() {
		current := e.c.seq == e.seq
		if current && now.Before(e.at) {
			break
		}
		c := e.c
		p.expiring.drop()
		if current {
			c.end()
		}
	}
	if now.Sub(p.swept) < sweepEvery {
		return
	}
	p.swept = now
	for _, c := range p.conns {
		if c.state == stateReading {
			c.sweep(now)
		}
	}
}

// awake says that the loop will look at what is posted by itself.
func (p *loop) awake() {
	p.mu.Lock()
	p.asleep = false
	p.mu.Unlock()
}

func (p *loop) ready(e *unix.EpollEvent) {
	if int(e.Fd) == p.wakeup {
		var count [8]byte
		_, _ = unix.Read(p.wakeup, count[:])
		return
	}
	c := p.conns[e.Fd]
	switch {
	case c == nil:
	case c.state == stateReading:
		c.receive()
	case !c.muted:
		if c.state == stateWaiting {
			c.arrived = time.Now()
		}
		c.mute()
	}
}

// adopt takes over a connection, or reports false.
func (p *loop) adopt(l *listener, tcp *net.TCPConn, id int64) bool {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	fd := -1
	_ = raw.Control(func(own uintptr) { fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) })
	if err != nil || fd < 0 {
		return false
	}
	c := &polled{loop: p, listener: l, fd: fd, retires: p.server.opts.retirement(time.Now())}
	c.done = func(token uint64) { p.post(c, token, (*polled).end) }
	c.ctx, c.cancel = context.WithCancel(l.ctx)
	c.peer = Peer{ID: id, Addr: tcp.RemoteAddr(), LocalAddr: tcp.LocalAddr(), Kill: c.kill, SetAuthenticated: c.member.Store}
	_ = tcp.Close()
	p.mu.Lock()
	p.open[c] = struct{}{}
	p.mu.Unlock()
	p.post(c, 0, (*polled).begin)
	return true
}

// drain ends the connections that do nothing, and the others when they have
// answered. Nothing is adopted any more.
func (p *loop) drain() {
	p.draining.Store(true)
	p.post(nil, 0, func(*polled) {
		for _, c := range p.conns {
			switch {
			case c.state != stateReading:
			case c.unsent():
				c.part(errDraining)
			default:
				c.close()
			}
		}
	})
}

// killAll ends all connections, and returns how many there were. Any goroutine
// may call it.
func (p *loop) killAll() int {
	p.mu.Lock()
	left := slices.Collect(maps.Keys(p.open))
	p.mu.Unlock()
	for _, c := range left {
		c.kill()
	}
	return len(left)
}
