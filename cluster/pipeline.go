package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/breaker"
	"github.com/limitgate/limitgate/limit"
)

const (
	// maxQueue is how many calls may wait in a lane: a node needs a few
	// milliseconds for as many, and nobody waits longer than that.
	maxQueue = 4096
	// maxInFlight is how many flights may be on their way: while the reply to one is
	// read the node works on the other. A third would only wait there.
	maxInFlight = 2
	// minPipelined is how many calls must wait for a second flight to leave. With
	// fewer, waiting for the first makes batches larger at no cost.
	minPipelined = maxBatch / 8
	// writeTimeout is how long a caller waits for a batch to be taken from it.
	writeTimeout = time.Millisecond
	// minBackoff and maxBackoff bound the pause between two attempts to connect.
	minBackoff = 5 * time.Millisecond
	maxBackoff = 500 * time.Millisecond
	// stableAfter is how long a connection must have lasted for the next attempt to come at
	// once; after one that was of use for a shorter time the pause is at most hasty, so
	// that a node which hangs up again and again is dialled a hundred times a second.
	stableAfter   = time.Second
	maxQuickRetry = 20 * time.Millisecond
)

// Why a call was never sent.
var (
	errOverload = errors.New("send call: its turn did not come in time")
	errDown     = fmt.Errorf("send call: no connection: %w", net.ErrClosed)
)

// pipeline is the way to one node: the calls of all connections meet in it. While
// flights are on their way the next one gathers, so that batches are as large as
// the load demands, without a timer; an idle pipeline sends at once what it is given,
// or at Flush what was begun together.
//
// One goroutine, in run, reads the replies and settles the flights. They are
// filled and sent by whoever finds that one may leave: a caller, or the reader.
type pipeline struct {
	script       script
	dial         func(context.Context) (*nodeConn, error)
	ioTimeout    time.Duration
	onFailure    func(error, []limit.Item) // a call stays undecided
	onScriptLoad func()                    // the script had to be loaded
	report       func(error)               // how the node is; nil is well
	record       func(breaker.Outcome)     // what became of calls

	// saturated says that more calls wait than a flight holds, and unsent that some
	// were submitted which nobody has tried to send.
	saturated, unsent atomic.Bool

	// answered are tickets whose callers the reader has yet to tell: it does when it
	// has nothing else to do, so that those who waited together wake together.
	answered    []*nodeRequest
	notifyLater func(*nodeRequest) // appends to answered

	// writers are the goroutines that go on sending what did not leave at once.
	writers sync.WaitGroup

	mu          sync.Mutex // guards what follows, but for what an owner does to its flight
	conn        *nodeConn  // nil without a connection
	connErr     error      // there is none: errDown, or a downError
	queue       []*nodeRequest
	queuedCalls int      // calls in queue
	sending     bool     // somebody fills or writes a flight
	free        []*batch // nobody's
	inFlight    []*batch // written or being written, in their order
	resend      []*batch // whose script was missing, to be sent once more
}

// nodeConn is a connection to a node, and how calls are put together for it.
type nodeConn struct {
	net.Conn
	in   *respReader
	opts batchOptions
}

// hangUp ends the connection, which its reader will notice.
func (conn *nodeConn) hangUp() { _ = conn.Close() }

// enqueue hands a ticket to the lane, to be sent now or when pump is called. It is
// answered in any case.
func (p *pipeline) enqueue(nr *nodeRequest, now bool) {
	nr.open = len(nr.calls)
	p.mu.Lock()
	var why error
	switch {
	case p.conn == nil:
		why = p.connErr
	case p.queuedCalls+len(nr.calls) > maxQueue:
		why = errOverload
	default:
		p.queue = append(p.queue, nr)
		p.queuedCalls += len(nr.calls)
		if p.queuedCalls > maxBatch {
			p.saturated.Store(true)
		}
		now = now || p.queuedCalls >= maxBatch // more would not travel together
	}
	p.mu.Unlock()
	switch {
	case why != nil:
		p.refuse(nr, why)
	case now:
		p.trySend()
	default:
		p.unsent.Store(true)
	}
}

// refuse leaves a ticket's calls undecided.
func (p *pipeline) refuse(nr *nodeRequest, why error) {
	p.report(why)
	p.record(breaker.Outcome{Stuck: 1, Err: why})
	nr.mu.Lock()
	last := false
	for _, c := range nr.calls {
		if !nr.abandoned {
			p.onFailure(why, nr.items[c.First:c.Last])
		}
		last = nr.answered()
	}
	nr.mu.Unlock()
	if last {
		nr.notifyDone()
	}
}

// trySend sends what may leave now. Only one goroutine does at a time; the others
// can rely on it.
func (p *pipeline) trySend() {
	p.unsent.Store(false) // before the queue is looked at
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.sending && p.canSend() {
		p.sending = true
		var sent bool
		if len(p.resend) > 0 {
			b := p.resend[0]
			p.resend = append(p.resend[:0], p.resend[1:]...)
			b.refs-- // send counts its reader
			sent = p.send(b, b.resend)
		} else {
			b := p.free[len(p.free)-1]
			p.free = p.free[:len(p.free)-1]
			p.dequeue(b)
			p.mu.Unlock()
			p.encode(b)
			p.mu.Lock()
			sent = p.send(b, b.out)
		}
		p.sending = !sent
	}
}

// canSend reports whether a flight may leave: the first at once, another one
// when it is worth while, so that the node has work while a reply is read.
func (p *pipeline) canSend() bool {
	switch {
	case len(p.resend) > 0:
		return true
	case len(p.queue) == 0 || len(p.free) == 0:
		return false
	case len(p.inFlight) == 0 || p.conn == nil:
		return true
	default:
		return p.queuedCalls >= minPipelined
	}
}

// dequeue moves tickets from the queue into a flight.
func (p *pipeline) dequeue(b *batch) {
	b.reset()
	if p.conn != nil {
		b.opts = p.conn.opts
	}
	n, calls := 0, 0
	for n < len(p.queue) && (n == 0 || calls+len(p.queue[n].calls) <= maxBatch) {
		calls += len(p.queue[n].calls)
		n++
	}
	b.requests = append(b.requests, p.queue[:n]...)
	p.queuedCalls -= calls
	if p.queuedCalls < maxBatch/2 {
		p.saturated.Store(false)
	}
	rest := copy(p.queue, p.queue[n:])
	clear(p.queue[rest:])
	p.queue = p.queue[:rest]
}

// encode puts the calls of a flight's tickets together and encodes them.
func (p *pipeline) encode(b *batch) {
	b.sentAt = time.Now()
	for _, nr := range b.requests {
		if !b.addRequest(nr, b.sentAt) {
			p.refuse(nr, errOverload)
		}
	}
	b.encode(p.script.sha)
}

// send sends a flight, as out. It is called with mu held, and lets go of it
// meanwhile. A node that does not read must not hold up the caller who sends:
// then the rest is written in the background, and send reports that it is not
// done.
func (p *pipeline) send(b *batch, out []byte) (done bool) {
	b.refs += 2 // this sender and the reader
	conn := p.conn
	if len(b.callers) > 0 && conn != nil {
		b.sentAt = time.Now()
		p.inFlight = append(p.inFlight, b)
		p.mu.Unlock()
		_ = conn.SetWriteDeadline(b.sentAt.Add(writeTimeout))
		n, err := conn.Write(out)
		p.mu.Lock()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.writers.Go(func() { p.sendRest(conn, b, out[n:]) })
			return false
		}
		if err != nil {
			conn.hangUp() // the reader sees it, and fails the flight
		}
		p.release(b)
		return true
	}
	p.mu.Unlock()
	p.fail(b, errDown, false)
	p.mu.Lock()
	p.release(b)
	p.release(b)
	return true
}

// sendRest goes on with what send began.
func (p *pipeline) sendRest(conn *nodeConn, b *batch, rest []byte) {
	_ = conn.SetWriteDeadline(time.Now().Add(p.ioTimeout))
	if _, err := conn.Write(rest); err != nil {
		conn.hangUp()
	}
	p.mu.Lock()
	p.release(b)
	p.sending = false
	p.mu.Unlock()
	p.trySend()
}

// release is called by the sender of a flight and by its reader when they need it
// no longer: the last one sets it free. A flight that is to be sent once more is
// needed by its reader.
func (p *pipeline) release(b *batch) {
	if b.refs--; b.refs == 0 {
		p.free = append(p.free, b)
	}
}

// fail leaves every call of a flight undecided. What was sent may have been
// executed all the same.
func (p *pipeline) fail(b *batch, why error, sent bool) {
	p.report(why)
	p.record(breaker.Outcome{Failed: len(b.requests), Err: why})
	for i := range b.commands {
		b.failCommand(&b.commands[i], why, sent, p.onFailure)
	}
}

// Run_ keeps a connection and reads its replies until ctx ends.
func (p *pipeline) Run_(ctx context.Context) {
	for pause := time.Duration(0); ctx.Err() == nil; wait(ctx, pause/2+rand.N(pause/2+1)) {
		pause = min(max(2*pause, minBackoff), maxBackoff)
		if err := p.connect(ctx); err != nil {
			p.setConnErr(err)
			p.report(err)
			continue
		}
		stop := context.AfterFunc(ctx, p.conn.hangUp)
		since := time.Now()
		settled, err := p.read()
		stop()
		p.disconnect(err)
		if settled > 0 && time.Since(since) < stableAfter {
			pause = min(pause, maxQuickRetry)
		} else if settled > 0 {
			pause = 0
		}
	}
	p.disconnect(errDown)
	p.writers.Wait()
}

// connected reports whether there is a connection.
func (p *pipeline) connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn != nil
}

// drop ends the connection, so that the next one begins with asking for the role.
func (p *pipeline) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		p.conn.hangUp()
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// connect makes the connection, unless there is one. It is called by run, and
// once before it.
func (p *pipeline) connect(ctx context.Context) error {
	if p.conn != nil {
		return nil
	}
	conn, err := p.dial(ctx)
	if err != nil {
		return err
	}
	conn.in.onTimeout, conn.in.beforeRead = p.onReadTimeout, p.notifyAnswered
	_ = conn.SetReadDeadline(time.Now().Add(p.ioTimeout))
	p.mu.Lock()
	p.conn = conn
	p.mu.Unlock()
	return nil
}

// setConnErr notes why there is no connection.
func (p *pipeline) setConnErr(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil {
		p.connErr = &downError{why}
	}
}

// disconnect ends the connection, and answers what was on its way or waits for it.
func (p *pipeline) disconnect(why error) {
	p.mu.Lock()
	if p.conn != nil {
		_ = p.conn.Close()
		p.conn, p.connErr = nil, &downError{why}
	}
	away := p.inFlight
	p.inFlight = nil
	p.mu.Unlock()
	for _, b := range away {
		p.fail(b, why, true)
		p.mu.Lock()
		p.release(b)
		p.mu.Unlock()
	}
	p.trySend()
}
