package server

import "time"

// quietTime is how long a connection may be silent before the room for its
// pipelines is given back.
const quietTime = 5 * time.Second

// receive waits for bytes and adds them to the input. It may return without any.
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
			c.since = time.Time{} // the time allowed a command begins here
		}
		return nil
	case isTimeout(err):
		return c.timedOut()
	default:
		return err
	}
}

// arm sets the read deadline that fits the present state.
func (c *conn) arm() error {
	deadline := c.deadline()
	if !deadline.Equal(c.armed) {
		if err := c.SetReadDeadline(deadline); err != nil {
			return err
		}
		c.armed = deadline
	}
	// The order matters: a drain sets its flag, then its deadline. Whichever of
	// the two deadlines came last, this read does not wait.
	if c.listener.draining.Load() {
		return errDraining
	}
	return nil
}

// deadline returns until when to wait for input; zero means for ever.
func (c *conn) deadline() time.Time {
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

// idleDeadline returns until when the client may keep us waiting; zero means for ever.
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

// timedOut says what it means that the deadline has passed.
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
