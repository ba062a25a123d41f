package server

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// part says goodbye as the reason for it demands, and closes.
func (c *polled) part(reason error) {
	count := &c.loop.server.count
	var breach protocolError
	var farewell []byte
	switch {
	case errors.As(reason, &breach):
		count.protocolErrors.Add(1)
		farewell = []byte("-ERR " + breach.Error() + "\r\n")
	case errors.Is(reason, errBrowser):
		count.protocolErrors.Add(1)
		c.close()
		return
	case errors.Is(reason, errTimeout):
		count.timedOut.Add(1)
		c.close()
		return
	case errors.Is(reason, errRetired):
		count.retired.Add(1)
	}
	c.leave(func() bool {
		if c.writeAll(farewell) {
			c.hangUp()
		}
		return false
	})
}

// hangUp ends our side and waits, a little, for the client to end its own; and as
// long as for a reply while it has not got all of ours, which closing would throw
// away when there is input that nobody read.
func (c *polled) hangUp() {
	if unix.Shutdown(c.fd, unix.SHUT_WR) != nil {
		return
	}
	opts := &c.loop.server.opts
	begun := time.Now()
	var drop [4096]byte
	for {
		wait := lingerTime
		if c.unsent() {
			wait = opts.WriteTimeout
		}
		left := time.Until(begun.Add(min(wait, opts.ShutdownTimeout/2)))
		if left <= 0 {
			return
		}
		n, err := unix.Read(c.fd, drop[:])
		switch {
		case n > 0 || errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, int(min(left, lingerTime/10).Milliseconds())+1)
		default:
			return
		}
	}
}

// unsent reports whether the client has yet to get a part of what was written.
func (c *polled) unsent() bool {
	n, err := unix.IoctlGetInt(c.fd, unix.SIOCOUTQ)
	return err == nil && n > 0
}

// retired reports whether the connection is old, and nothing has arrived that is
// not answered.
func (c *polled) retired(now time.Time) bool {
	if c.in.pending() || !isPast(c.retires, now) {
		return false
	}
	n, err := unix.IoctlGetInt(c.fd, unix.SIOCINQ)
	return err != nil || n == 0
}
