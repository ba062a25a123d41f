package load

import "errors"

// conn is a connection to a server.
type conn struct {
	id     int // its index among the connections
	target int // the target to which it is connected
	fd     int
	keys   *cursor
	secure *secure // nil without TLS

	out     []byte // requests to send
	sent    int    // how much of out is written
	writing bool   // the poller reports when more can be written

	in   []byte
	have int // how much of in is filled

	bursts  []burst // in flight, the oldest at head
	head    int
	waiting int // outstanding replies
}

// burst is a number of requests that were due at the same time.
type burst struct {
	due int64 // nanoseconds since the start of the run
	n   int
}

// cursor iterates over keys in a cycle.
type cursor struct {
	keys Keys
	at   int
}

func (c *cursor) next() uint32 {
	key := c.keys[c.at]
	if c.at++; c.at == len(c.keys) {
		c.at = 0
	}
	return key
}

// inputSize is large enough for the replies to a deep pipeline.
const inputSize = 16 << 10

// add appends n requests that are due at due.
func (c *conn) add(r *Request, n int, due int64) error {
	begin := len(c.out)
	for range n {
		c.out = r.append(c.out, c.keys.next())
	}
	if last := len(c.bursts) - 1; last >= c.head && c.bursts[last].due == due {
		c.bursts[last].n += n
	} else {
		c.bursts = append(c.bursts, burst{due: due, n: n})
	}
	c.waiting += n
	return c.seal(begin)
}

// flush writes as much of out as the socket takes.
func (c *conn) flush(p *poller) error {
	for c.sent < len(c.out) {
		n, err := writeSocket(c.fd, c.out[c.sent:])
		if errors.Is(err, errAgain) {
			return c.await(p, true)
		}
		if err != nil {
			return err
		}
		c.sent += n
	}
	c.out, c.sent = c.out[:0], 0
	return c.await(p, false)
}

// await sets whether the poller reports when the socket is writable.
func (c *conn) await(p *poller, writing bool) error {
	if c.writing == writing {
		return nil
	}
	c.writing = writing
	return p.watch(c.fd, c.id, true, writing)
}

// fill reads what has arrived and reports whether anything has.
func (c *conn) fill() (bool, error) {
	if c.have == len(c.in) {
		return false, errors.New("read reply: it is longer than a reply can be")
	}
	n, err := c.read(c.in[c.have:])
	if errors.Is(err, errAgain) {
		return false, nil
	}
	c.have += n
	return err == nil, err
}

func (c *conn) read(b []byte) (int, error) {
	if c.secure != nil {
		return c.secure.conn.Read(b)
	}
	return readSocket(c.fd, b)
}

// settle counts the complete replies. It calls count burst by burst, with the time at
// which the burst was due and the maximum number of its replies; count returns the number
// of replies it found and their size in bytes.
func (c *conn) settle(count func(due int64, most int, b []byte) (n, size int, err error)) error {
	at := 0
	for at < c.have {
		if c.head == len(c.bursts) {
			return errors.New("read reply: there are more replies than requests")
		}
		b := &c.bursts[c.head]
		n, size, err := count(b.due, b.n, c.in[at:c.have])
		if err != nil {
			return err
		}
		at += size
		c.waiting -= n
		if b.n -= n; b.n > 0 {
			break // the rest has not arrived
		}
		c.head++
	}
	if c.head == len(c.bursts) {
		c.bursts, c.head = c.bursts[:0], 0
	}
	c.have = copy(c.in, c.in[at:c.have])
	return nil
}
