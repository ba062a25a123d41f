package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// epollConn is a connection of a loop. Everything belongs to the loop's goroutine, but
// while the state is stateServing the session, the batch and what outcome has belong
// to the lane's.
type epollConn struct {
	loop          *eventLoop
	fd            int
	peer          Peer
	session       Session
	async         AsyncSession // session, if it is one
	ctx           context.Context
	cancel        context.CancelFunc
	authenticated atomic.Bool // has authenticated
	// maxAgeAt is when the connection is old enough to be closed; zero is never.
	maxAgeAt time.Time

	in    readBuffer
	since time.Time
	batch *batch
	// seq numbers what the session is asked: late words about an earlier one are
	// not listened to.
	seq    uint64
	state  connState
	bulk   bool   // moves much at once: others go first
	events uint32 // that epoll reports
	timer  timer
	// arrived is since when input has been waiting for the session to be done with
	// what came before.
	arrived time.Time
	onDone  func(token uint64)

	quit          bool // is closed when the reply is written
	halfClosed    bool // the client has ended its side
	closeWhenDone bool // is closed when the session is done, without a reply

	rest    []byte    // of a reply, to be written
	closing time.Time // when our side was ended

	task    task
	queue   *taskQueue                       // that has the task
	ask     func(context.Context) taskResult // what the task does
	taskCtx context.Context                  // what it does it with
	endLong context.CancelFunc               // ends taskCtx alone; may be nil
	result  taskResult
	account account
	counted int64 // in account
	kept    int64 // by the session
}

// connState is the state of a connection, by the event that moves it on.
type connState uint8

const (
	stateReading  connState = iota // input
	stateWaiting                   // done, or Until
	stateServing                   // its task in a lane
	stateReplying                  // the end of the round, to write
	stateWriting                   // room in the socket
	stateClosing                   // the client's end, or a deadline: our side is closed
	stateGone                      // nothing: the descriptor is closed
)

// Events that epoll reports beside errors and hang-ups, which it always does. A connection
// that is not read is still watched for its client's end.
const (
	readEvents  = unix.EPOLLIN | unix.EPOLLRDHUP
	pauseEvents = unix.EPOLLRDHUP
	writeEvents = unix.EPOLLOUT | unix.EPOLLRDHUP
	goneEvents  = unix.EPOLLHUP | unix.EPOLLERR
)

func newEpollConn(p *eventLoop, fd int) *epollConn {
	c := &epollConn{loop: p, fd: fd, maxAgeAt: p.server.opts.retirement(time.Now())}
	c.in.spare = &p.buffers
	c.onDone = func(token uint64) { p.post(c, token, (*epollConn).end) }
	c.task.run = c.runTask
	c.account.evict = func() {
		p.server.count.evicted.Add(1)
		c.kill()
	}
	return c
}

// begin opens the session and listens to the client.
func (c *epollConn) begin() {
	if c.state == stateGone { // killed already
		return
	}
	c.loop.conns[int32(c.fd)] = c
	if c.loop.draining.Load() || !c.open() {
		c.close()
		return
	}
	c.events = readEvents
	err := unix.EpollCtl(c.loop.epoll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: readEvents, Fd: int32(c.fd)})
	if err != nil {
		slog.Warn("cannot watch a connection", "error", err)
		c.close()
	}
}

func (c *epollConn) open() (ok bool) {
	defer c.survive("open", &ok)
	c.session = c.loop.server.newSession(c.peer)
	c.async, _ = c.session.(AsyncSession)
	return true
}

// survive reports a panic of the session, which ends the connection.
func (c *epollConn) survive(doing string, ok *bool) {
	if value := recover(); value != nil {
		*ok = false
		c.loop.server.panicked(doing, c.peer.ID, value)
	}
}

// watch sets what epoll reports.
func (c *epollConn) watch(events uint32) {
	if c.halfClosed {
		events &^= unix.EPOLLRDHUP // that is known
	}
	if c.events == events {
		return
	}
	c.events = events
	_ = unix.EpollCtl(c.loop.epoll, unix.EPOLL_CTL_MOD, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd)})
}

// onEvent acts on what epoll reports.
func (c *epollConn) onEvent(events uint32) {
	switch c.state {
	case stateReading:
		c.onReadable()
	case stateClosing:
		c.onDiscard()
	case stateReplying: // in a moment, in this round
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

// Read reads from the socket. It never waits.
func (c *epollConn) Read(b []byte) (int, error) {
	n, err := unix.Read(c.fd, b)
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	default:
		return n, nil
	}
}

// onReadable reads what has arrived and answers it.
func (c *epollConn) onReadable() {
	waiting := c.in.pending()
	n, err := c.in.fill(c)
	switch {
	case n > 0:
		c.bulk = n >= mediumBuffer
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
	if c.loop.server.opts.RequireAuth && !c.authenticated.Load() {
		return &c.loop.server.guestBounds
	}
	return &c.loop.server.bounds
}

// pause waits for input. A connection keeps no buffer, or one for what has arrived of a
// command.
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

// settle records what the connection holds.
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
		c.loop.server.ledger.set(&c.account, held)
	}
}

// sweep closes a connection that keeps us waiting, and gives back what a quiet
// one does not need.
func (c *epollConn) sweep(now time.Time) {
	if c.retired(now) {
		c.closeFor(errRetired)
		return
	}
	opts := &c.loop.server.opts
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
