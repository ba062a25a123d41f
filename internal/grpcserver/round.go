package grpcserver

import "context"

// maxOut bounds the replies that wait for those behind them.
const maxOut = 256 << 10

// answerRound calls the methods of the requests that have arrived whole, and writes their replies.
func (c *conn) answerRound() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.round) > 0 {
		if first := c.round[0]; first.unary == nil {
			c.round = append(c.round[:0], c.round[1:]...)
			c.startStream(first)
		} else {
			c.callUnary(first.path, first.unary)
		}
	}
}

// callUnary calls a method with its requests of the round, and writes their replies. The mutex is not held while
// the method runs.
func (c *conn) callUnary(path string, method Unary) {
	b := &c.batch
	b.Calls, b.pending = b.Calls[:0], b.pending[:0]
	others := c.round[:0]
	for _, s := range c.round {
		if s.path != path {
			others = append(others, s)
			continue
		}
		s.begin()
		b.Calls = append(b.Calls, &s.call)
	}
	clear(c.round[len(others):])
	c.round = others
	c.mu.Unlock()
	c.server.protect(b.Calls, func() { method(b) })
	c.mu.Lock()
	for _, call := range b.Calls {
		if !call.later {
			c.reply(call.stream)
		}
	}
	for _, p := range b.pending {
		c.methods.Go(func() { c.answerLater(p) })
	}
	clear(b.pending)
	clear(b.Calls)
}

// begin makes the call of a request.
func (s *stream) begin() {
	s.calling = true
	s.call = Call{Message: s.data[prefixLen:], Reply: append(s.call.Reply[:0], noPrefix[:]...), stream: s}
}

// answerLater calls a function of Batch.Go, and writes the replies to its calls.
func (c *conn) answerLater(p pending) {
	c.server.protect(p.calls, p.answer)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range p.calls {
		c.reply(call.stream)
	}
	_ = c.wrote() // the goroutine of run gets the error, too
}

// wrote writes the output of a method in a goroutine of its own. The goroutine of run may have to end the
// connection now, or to bound its wait for the client.
func (c *conn) wrote() error {
	err := c.write()
	if err != nil || c.ending.step >= endFinal || c.flow.blocked > 0 {
		c.interrupt()
	}
	return err
}

// startStream calls a method of Options.Streaming.
func (c *conn) startStream(s *stream) {
	if c.streaming >= maxStreaming {
		c.refuse(s, errStreaming)
		return
	}
	c.streaming++
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	c.writeHeaders(s)
	c.methods.Go(func() {
		err := c.callStreaming(ctx, s)
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.streams[s.id] == s {
			s.err = err
			c.writeTrailers(s)
			_ = c.wrote() // the goroutine of run gets the error, too
		}
	})
}

// callStreaming calls a method of Options.Streaming. A panic is its error.
func (c *conn) callStreaming(ctx context.Context, s *stream) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.server.panicked(p)
			err = errInternal
		}
	}()
	return s.streaming(ctx, s.data[prefixLen:], func(message []byte) error { return c.send(s, message) })
}
