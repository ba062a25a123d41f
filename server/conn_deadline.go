package server

import "time"

// quietTime is the time without input after which a connection releases its large
// buffers.
const quietTime = 5 * time.Second

// receive waits for bytes and adds them to the read buffer. It may return without any.
func (c *conn) receive() error {
	c.in.settle()
	if err := c.arm(); err != nil {
		return err
	}
	waiting := c.in.pending()
	n, err := c.in.fill(c.Conn)
	if len(c.in.buf) > batchBytes || c.counted != c.kept {
		c.settle(0)
	}
	switch {
	case n > 0:
		if !waiting {
			c.since = time.Time{} // the time allowed for a command begins here
		}
		return nil
	case isTimeout(err):
		return c.timedOut()
	default:
		return err
	}
}

// arm sets the read deadline for the present state.
func (c *conn) arm() error {
	deadline := c.deadline()
	if !deadline.Equal(c.armed) {
		if err := c.SetReadDeadline(deadline); err != nil {
			return err
		}
		c.armed = deadline
	}
	// The order matters: a drain sets its flag and then its deadline. Whichever of the
	// two deadlines is set last, this read does not wait.
	if c.listener.draining.Load() {
		return errDraining
	}
	return nil
}

// deadline returns the time until which to wait for input; zero means forever.
func (c *conn) deadline() time.Time {
	at := c.ageDeadline()
	if by := c.authentication.deadline(&c.server.opts); !by.IsZero() && (at.IsZero() || by.Before(at)) {
		return by
	}
	return at
}

// ageDeadline returns the deadline of a client that has authenticated.
func (c *conn) ageDeadline() time.Time {
	if c.maxAgeAt.IsZero() || c.in.pending() {
		return c.idleDeadline()
	}
	at := c.maxAgeAt
	if now := time.Now(); !now.Before(at) {
		at = now.Add(quietGrace)
	}
	if other := c.idleDeadline(); !other.IsZero() && other.Before(at) {
		return other
	}
	return at
}

// idleDeadline returns the time until which the client may send nothing; zero means
// forever.
func (c *conn) idleDeadline() time.Time {
	opts := &c.server.opts
	if !c.in.pending() && !c.in.large() && opts.IdleTimeout == 0 {
		return time.Time{}
	}
	now := time.Now()
	if c.since.IsZero() {
		c.since = now
	}
	switch {
	case c.in.pending():
		return c.since.Add(opts.RequestTimeout)
	case c.in.large() && opts.IdleTimeout == 0:
		return now.Add(quietTime)
	case c.in.large():
		return now.Add(min(quietTime, opts.IdleTimeout))
	default:
		return c.since.Add(opts.IdleTimeout)
	}
}

// timedOut returns the reason for which a passed deadline closes the connection.
func (c *conn) timedOut() error {
	switch {
	case c.listener.draining.Load():
		return errInterrupted
	case !c.in.pending() && isPast(c.maxAgeAt, time.Now()):
		return errRetired
	case c.in.large() && !c.in.pending():
		c.in.drop()
		return nil
	default:
		return errTimeout
	}
}
