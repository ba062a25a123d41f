package server

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// lingerStep is the interval at which a closing connection with undelivered replies is
// checked.
const lingerStep = 100 * time.Millisecond

// closeFor closes the connection in the way that the reason requires.
func (c *epollConn) closeFor(reason error) {
	count := &c.listener.server.count
	if last := c.listener.server.lastReply(reason, &c.in); last != nil {
		c.quit = true
		c.rest = last
		c.write()
		return
	}
	switch {
	case errors.Is(reason, errTimeout):
		count.timedOut.Add(1)
		c.close()
		return
	case errors.Is(reason, errRetired):
		count.retired.Add(1)
	}
	c.hangUp()
}

// hangUp closes the server's side and waits up to lingerTime for the client to close its
// own, or as long as for a reply while replies are undelivered. If the socket were closed
// with unread input, the kernel would discard those replies.
func (c *epollConn) hangUp() {
	if unix.Shutdown(c.fd, unix.SHUT_WR) != nil {
		c.close()
		return
	}
	c.state = stateClosing
	c.in.drop()
	c.settle()
	c.halfClosed = true // once both sides are closed, epoll would report it repeatedly
	c.watch(unix.EPOLLIN)
	c.closing = time.Now()
	c.loop.timers.set(c, c.closing.Add(c.linger(lingerTime)))
}

// linger returns wait, limited to half of ShutdownTimeout.
func (c *epollConn) linger(wait time.Duration) time.Duration {
	return min(wait, c.listener.server.opts.ShutdownTimeout/2)
}

// onDiscard reads and discards input of a connection that is closing.
func (c *epollConn) onDiscard() {
	n, err := readNow(c.fd, c.loop.discard)
	if n > 0 || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return
	}
	c.close()
}

// expired handles a deadline that has passed.
func (c *epollConn) expired(now time.Time) {
	switch c.state {
	case stateWaiting:
		c.end()
	case stateWriting:
		c.listener.server.count.slowReaders.Add(1)
		c.close()
	case stateClosing:
		if c.undelivered() && now.Before(c.closing.Add(c.linger(c.listener.server.opts.WriteTimeout))) {
			c.loop.timers.set(c, now.Add(c.linger(lingerStep)))
			return
		}
		c.close()
	default: // no deadline is set
	}
}

// undelivered reports whether the client has not yet received all that was written.
func (c *epollConn) undelivered() bool {
	n, err := unix.IoctlGetInt(c.fd, unix.SIOCOUTQ)
	return err == nil && n > 0
}

// retired reports whether the connection has reached its maximum age and has no
// unanswered input.
func (c *epollConn) retired(now time.Time) bool {
	if c.in.pending() || !isPast(c.maxAgeAt, now) {
		return false
	}
	n, err := unix.IoctlGetInt(c.fd, unix.SIOCINQ)
	return err != nil || n == 0
}

// onHalfClose records that the client has closed its side. The client may still read: its
// commands are answered, except long ones.
func (c *epollConn) onHalfClose() {
	c.halfClosed = true
	c.watch(c.events)
	if c.state != stateWriting {
		c.watch(0)
	}
	if c.state != stateServing || c.endLong == nil {
		return
	}
	c.endLong()
	if long := &c.listener.long; c.queue == long && long.withdraw(&c.task) {
		c.offload(c.taskCtx, &c.listener.waiting, c.ask)
	}
}

// onGone closes a connection whose client reads no more, once its session is done.
func (c *epollConn) onGone() {
	if c.state == stateServing && c.queue.withdraw(&c.task) {
		c.close()
		return
	}
	c.closeWhenDone = true
	c.cancel()
	// Epoll would report the hang-up repeatedly.
	_ = unix.EpollCtl(c.loop.epoll, unix.EPOLL_CTL_DEL, c.fd, nil)
}

// kill closes the connection. It is safe for concurrent use.
func (c *epollConn) kill() {
	c.cancel()
	c.loop.post(c, 0, (*epollConn).onKill)
}

// onKill closes the connection without a reply, at once or when its session is done.
func (c *epollConn) onKill() {
	switch c.state {
	case stateWaiting:
		c.closeWhenDone = true
		c.end()
	case stateServing:
		_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
		c.onGone()
	default:
		c.close()
	}
}

// close closes the connection and its session, which must not be serving.
func (c *epollConn) close() {
	if c.state == stateGone {
		return
	}
	c.state = stateGone
	c.seq++
	delete(c.loop.conns, int32(c.fd))
	c.loop.timers.remove(c)
	c.cancel()
	if c.session != nil {
		c.closeSession()
	}
	if c.batch == nil {
		c.in.drop() // otherwise a batch aliases the buffer
	}
	c.in, c.batch, c.rest, c.kept = readBuffer{}, nil, nil, 0
	c.settle()
	_ = unix.Close(c.fd)
	c.listener.server.count.connections.Add(-1)
	c.loop.mu.Lock()
	delete(c.loop.open, c)
	c.loop.mu.Unlock()
	c.listener.conns.Done()
}

func (c *epollConn) closeSession() {
	ok := true
	defer c.survive("close", &ok)
	c.session.Close()
}
