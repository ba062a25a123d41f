package server

import (
	"context"
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"
)

// epollConn is a connection of an event loop. All fields belong to the loop's goroutine,
// except that in stateServing the session, the batch and outcome belong to the goroutine
// of the task queue.
type epollConn struct {
	loop           *eventLoop
	listener       *listener
	fd             int
	peer           Peer
	session        Session
	async          AsyncSession // session, if it is an AsyncSession
	fast           FastSession  // session, if it is a FastSession
	ctx            context.Context
	cancel         context.CancelFunc
	authentication authentication
	// maxAgeAt is the time from which the connection is closed for its age; zero is
	// never.
	maxAgeAt time.Time

	in    readBuffer
	since time.Time
	batch *batch
	// seq numbers the calls of the session: notifications about an earlier call are
	// ignored.
	seq    uint64
	state  connState
	bulk   bool   // moves much data at once: other connections go first
	fresh  bool   // has sent nothing yet: the same, as its first input may be many commands
	events uint32 // that epoll watches
	timer  timer
	// arrived is the time since which input waits for the session to finish the commands
	// before it.
	arrived time.Time
	onDone  func(token uint64)

	quit          bool // close when the reply is written
	halfClosed    bool // the client has closed its side
	closeWhenDone bool // close when the session is done, without a reply

	rest    []byte    // of a reply, still to be written
	closing time.Time // when the server's side was closed

	task    task
	queue   *taskQueue                       // the queue that holds the task
	ask     func(context.Context) taskResult // the task's function
	taskCtx context.Context                  // the task's context
	endLong context.CancelFunc               // cancels taskCtx alone; may be nil
	result  taskResult
	account account
	counted int64 // amount recorded in account
	kept    int64 // memory that the session keeps
}

// connState is the state of a connection, named by the event that it waits for.
type connState uint8

const (
	stateReading  connState = iota // input
	stateWaiting                   // done, or Deadline
	stateServing                   // its task in a task queue
	stateReplying                  // the end of the round, to write
	stateWriting                   // room in the socket
	stateClosing                   // the client's end, or a deadline: the server's side is closed
	stateGone                      // nothing: the descriptor is closed
)

// Events that epoll reports in addition to errors and hang-ups, which it always reports.
// A connection whose reads are paused is still watched for its client's end.
const (
	readEvents  = unix.EPOLLIN | unix.EPOLLRDHUP
	pauseEvents = unix.EPOLLRDHUP
	writeEvents = unix.EPOLLOUT | unix.EPOLLRDHUP
	goneEvents  = unix.EPOLLHUP | unix.EPOLLERR
)

func newEpollConn(p *eventLoop, l *listener, fd int) *epollConn {
	c := &epollConn{loop: p, listener: l, fd: fd, fresh: true, maxAgeAt: l.server.opts.retirement(time.Now())}
	c.authentication.init(&l.server.opts)
	c.in.spare = &p.buffers
	c.onDone = func(token uint64) { p.post(c, token, (*epollConn).end) }
	c.task.run = c.runTask
	c.account.evict = func() {
		l.server.count.evicted.Add(1)
		c.kill()
	}
	return c
}

// begin creates the session and starts watching the socket.
func (c *epollConn) begin() {
	if c.state == stateGone { // killed already
		return
	}
	c.loop.conns[int32(c.fd)] = c
	if c.listener.draining.Load() || !c.open() {
		c.close()
		return
	}
	c.events = readEvents
	err := unix.EpollCtl(c.loop.epoll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: readEvents, Fd: int32(c.fd)})
	if err != nil {
		c.listener.server.opts.Log.Warn("cannot watch a connection", "error", err)
		c.close()
	}
}

func (c *epollConn) open() (ok bool) {
	defer c.survive("open", &ok)
	c.session = c.listener.server.newSession(c.peer)
	c.async, _ = c.session.(AsyncSession)
	c.fast, _ = c.session.(FastSession)
	return true
}

// survive recovers and logs a panic of the session, which ends the connection.
func (c *epollConn) survive(doing string, ok *bool) {
	if value := recover(); value != nil {
		*ok = false
		c.listener.server.panicked(doing, c.peer.ID, value)
	}
}

// watch sets the events that epoll reports.
func (c *epollConn) watch(events uint32) {
	if c.halfClosed {
		events &^= unix.EPOLLRDHUP // already known
	}
	if c.events == events {
		return
	}
	c.events = events
	_ = unix.EpollCtl(c.loop.epoll, unix.EPOLL_CTL_MOD, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd)})
}

// onEvent handles the events that epoll reports.
func (c *epollConn) onEvent(events uint32) {
	switch c.state {
	case stateReading:
		c.onReadable()
	case stateClosing:
		c.onDiscard()
	case stateReplying: // later in this round
	case stateWriting:
		if events&(goneEvents|unix.EPOLLOUT) != 0 {
			c.write()
		} else {
			c.onHalfClose()
		}
	case stateWaiting, stateServing:
		if c.state == stateWaiting && events&unix.EPOLLIN != 0 {
			c.arrived = time.Now()
		}
		switch {
		case events&goneEvents != 0:
			c.onGone()
		case events&unix.EPOLLRDHUP != 0:
			c.onHalfClose()
		default:
			c.watch(pauseEvents)
		}
	case stateGone:
	}
}

// Read reads from the socket. It never blocks.
func (c *epollConn) Read(b []byte) (int, error) {
	n, err := readNow(c.fd, b)
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	default:
		return n, nil
	}
}

// onReadable reads the input that has arrived and answers it.
func (c *epollConn) onReadable() {
	waiting := c.in.pending()
	n, err := c.in.fill(c)
	switch {
	case n > 0:
		c.bulk, c.fresh = n >= mediumBuffer, false
		if !waiting {
			c.since = time.Time{}
		}
		c.serve()
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		c.pause()
	default:
		c.close()
	}
}

func (c *epollConn) bounds() *parserBounds {
	if c.authentication.missing() {
		return &c.listener.server.unauthenticatedBounds
	}
	return &c.listener.server.bounds
}

// pause waits for input. The connection keeps no buffer, or one for the part of a command
// that has arrived.
func (c *epollConn) pause() {
	if c.in.pending() {
		c.in.shrink()
	} else {
		c.in.park()
	}
	if c.counted != 0 || len(c.in.buf) > mediumBuffer {
		c.settle()
	}
}

// settle records the memory that the connection holds.
func (c *epollConn) settle() {
	held := c.kept
	if len(c.in.buf) > mediumBuffer {
		held += int64(len(c.in.buf))
	}
	switch c.state {
	case stateReplying, stateServing: // of the latter only before its task is queued
		if len(c.batch.reply) > mediumBuffer || c.state == stateReplying {
			held += int64(cap(c.batch.reply))
		}
	case stateWriting:
		held += int64(cap(c.rest))
	default:
	}
	if held != c.counted {
		c.counted = held
		c.listener.server.ledger.set(&c.account, held)
	}
}

// sweep closes a connection whose client exceeds a deadline, and releases the buffers
// that a quiet connection does not need.
func (c *epollConn) sweep(now time.Time) {
	if c.retired(now) {
		c.closeFor(errRetired)
		return
	}
	if isPast(c.authentication.deadline(&c.listener.server.opts), now) {
		c.closeFor(errTimeout)
		return
	}
	opts := &c.listener.server.opts
	if c.since.IsZero() {
		c.since = now
		return
	}
	waited := now.Sub(c.since)
	switch {
	case c.in.pending() && waited >= opts.RequestTimeout,
		!c.in.pending() && opts.IdleTimeout > 0 && waited >= opts.IdleTimeout:
		c.closeFor(errTimeout)
	case !c.in.pending() && c.in.large() && waited >= quietTime:
		c.in.drop()
	}
}
