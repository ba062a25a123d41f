package server

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"
)

// begin opens the session and listens to the client.
func (c *polled) begin() {
	c.loop.conns[int32(c.fd)] = c
	if c.loop.draining.Load() || !c.open() {
		c.close()
		return
	}
	if err := c.listen(); err != nil {
		slog.Warn("cannot watch a connection", "error", err)
		c.close()
	}
}

func (c *polled) open() (ok bool) {
	defer c.survive("open", &ok)
	c.session = c.loop.server.newSession(c.peer)
	c.async, _ = c.session.(AsyncSession)
	return true
}

// survive ends the connection whose session panicked.
func (c *polled) survive(doing string, ok *bool) {
	if value := recover(); value != nil {
		*ok = false
		c.loop.server.panicked(doing, c.peer.ID, value)
	}
}

// listen has epoll tell of input.
func (c *polled) listen() error {
	c.muted = false
	return unix.EpollCtl(c.loop.epoll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.fd)})
}

// mute ends that, until the session is done with what came before.
func (c *polled) mute() {
	c.muted = true
	_ = unix.EpollCtl(c.loop.epoll, unix.EPOLL_CTL_DEL, c.fd, nil)
}

// Read reads from the socket. It never waits.
func (c *polled) Read(b []byte) (int, error) {
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

// receive reads what has arrived and answers it.
func (c *polled) receive() {
	c.in.settle()
	waiting := c.in.pending()
	n, err := c.in.fill(c)
	switch {
	case n > 0:
		if !waiting {
			c.since = time.Time{}
		}
		c.serve()
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
	default:
		c.close()
	}
}

func (c *polled) limits() *limits {
	if c.loop.server.opts.RequireAuth && !c.member.Load() {
		return &c.loop.server.guestLimits
	}
	return &c.loop.server.limits
}

// serve answers the commands that are complete.
func (c *polled) serve() {
	for c.state == stateReading && c.in.pending() {
		b := takeBatch()
		if c.async != nil {
			b.most = asyncCommands
		}
		err := c.in.collect(b, c.limits())
		if b.empty() || errors.Is(err, errBrowser) {
			b.release()
			// For the rest of a command it is the client who is waited for.
			c.arrived = time.Time{}
			if err != nil {
				c.part(err)
			}
			return
		}
		c.since = time.Time{}
		c.batch = b
		c.answer()
	}
}

// answer has the session answer the batch.
func (c *polled) answer() {
	c.seq++
	reply, begun, answered, ok := c.ask()
	c.arrived = time.Time{}
	switch {
	case !ok:
		c.close()
	case answered:
		c.reply(reply)
	case begun:
		c.state = stateWaiting
		c.loop.begun = true
		c.loop.expiring.push(expiry{c, c.seq, c.async.Until()})
	default:
		c.leave(func() bool {
			reply, quit := c.session.Serve(c.ctx, c.batch.cmds, c.batch.reply[:0])
			c.batch.reply, c.quit = reply, quit
			return c.writeAll(reply)
		})
	}
}

func (c *polled) ask() (reply []byte, begun, answered, ok bool) {
	defer c.survive("begin", &ok)
	if c.async == nil {
		return nil, false, false, true
	}
	reply, begun, answered = c.async.Begin(c.arrived, c.batch.cmds, c.batch.reply[:0], c.done, c.seq)
	return reply, begun, answered, true
}

// end ends what the session has begun.
func (c *polled) end() {
	if c.state != stateWaiting {
		return
	}
	c.seq++
	reply, finished, ok := c.finish()
	switch {
	case !ok:
		c.close()
	case finished:
		c.reply(reply)
	default:
		c.leave(func() bool {
			c.batch.reply = c.async.Resume()
			return c.writeAll(c.batch.reply)
		})
	}
}

func (c *polled) finish() (reply []byte, finished, ok bool) {
	defer c.survive("end", &ok)
	reply, finished = c.async.End()
	return reply, finished, true
}

// goOn goes on with the input.
func (c *polled) goOn() {
	if c.state != stateReading {
		return
	}
	if c.muted && c.listen() != nil {
		c.close()
		return
	}
	if c.in.pending() {
		c.serve()
	}
}

// reply has the reply to the batch sent when the round ends.
func (c *polled) reply(reply []byte) {
	c.batch.reply = reply
	c.state = stateReplying
	c.loop.unsent = append(c.loop.unsent, c)
}

// send sends the reply and goes on with the input.
func (c *polled) send() {
	if c.state != stateReplying || c.gone {
		return
	}
	c.state = stateReading
	reply := c.batch.reply
	n, err := 0, error(nil)
	if len(reply) > 0 {
		n, err = unix.Write(c.fd, reply)
	}
	switch {
	case err != nil && !errors.Is(err, unix.EAGAIN):
		c.close()
	case max(0, n) < len(reply):
		rest := reply[max(0, n):]
		c.leave(func() bool { return c.writeAll(rest) })
	default:
		c.replied()
		c.goOn()
	}
}

// replied ends a batch whose reply is sent.
func (c *polled) replied() {
	c.batch.release()
	c.batch = nil
	switch {
	case c.quit || c.loop.draining.Load():
		c.part(errDraining)
	case !c.retires.IsZero() && c.retired(time.Now()):
		c.part(errRetired)
	}
}

// leave has a goroutine do what may block, and goes on when it has. It reports
// whether the connection does.
func (c *polled) leave(do func() bool) {
	c.state = stateAway
	c.seq++
	c.listener.conns.Go(func() {
		ok := c.try(do)
		c.loop.post(c, 0, func(c *polled) { c.back(ok) })
	})
}

func (c *polled) try(do func() bool) (ok bool) {
	defer c.survive("serve", &ok)
	return do()
}

func (c *polled) back(ok bool) {
	c.state = stateReading
	if !ok {
		c.close()
		return
	}
	if c.batch != nil {
		c.replied()
	}
	c.goOn()
}

// writeAll writes a reply, within WriteTimeout.
func (c *polled) writeAll(reply []byte) bool {
	deadline := time.Now().Add(c.loop.server.opts.WriteTimeout)
	for len(reply) > 0 {
		n, err := unix.Write(c.fd, reply)
		if n > 0 {
			reply = reply[n:]
			continue
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return false
		}
		left := time.Until(deadline)
		if left <= 0 {
			c.loop.server.count.slowReaders.Add(1)
			return false
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLOUT}}, int(min(left, time.Second).Milliseconds())+1)
	}
	return true
}

// sweep closes a connection that keeps us waiting, and gives back what a quiet
// one does not need.
func (c *polled) sweep(now time.Time) {
	if c.retired(now) {
		c.part(errRetired)
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
		c.part(errTimeout)
	case !c.in.pending() && c.in.large() && waited >= quietTime:
		c.in.drop()
	}
}

// kill ends the connection. Any goroutine may call it.
func (c *polled) kill() {
	c.cancel()
	c.mu.Lock()
	if !c.gone {
		_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
	}
	c.mu.Unlock()
	// One that waits for its session does not look at the socket.
	c.loop.post(c, 0, (*polled).end)
}

// close ends the connection and its session.
func (c *polled) close() {
	if c.gone {
		return
	}
	c.seq++
	delete(c.loop.conns, int32(c.fd))
	c.loop.mu.Lock()
	delete(c.loop.open, c)
	c.loop.mu.Unlock()
	c.mu.Lock()
	c.gone = true
	_ = unix.Close(c.fd)
	c.mu.Unlock()
	c.cancel()
	if c.session != nil {
		ok := true
		func() {
			defer c.survive("close", &ok)
			c.session.Close()
		}()
	}
	c.loop.server.count.connections.Add(-1)
}
