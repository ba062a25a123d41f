package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/limit"
)

const (
	// maxQueue is the maximum number of calls in each queue of a pipeline. A node decides that many
	// which share commands in a few milliseconds; of those with their own most leave at their deadline.
	maxQueue = 4096
	// maxInFlight is the maximum number of batches in flight: while the reply to one is
	// read, the node works on the other. A third would only wait at the node.
	maxInFlight = 2
	// minPipelined is the number of queued calls that a second batch in flight requires.
	// With fewer, waiting for the first batch makes batches larger at no cost.
	minPipelined = maxBatch / 8
	// maxAlone is the maximum number of calls with commands of their own in a batch. A node decides
	// so many in about a millisecond, for which other callers wait with each batch in flight: without
	// it one client with many of them holds up all others.
	maxAlone = 16
	// aloneCost is how many calls that share commands cost a node as much as one with its own.
	aloneCost = maxBatch / maxAlone
	// minBackoff and maxBackoff bound the pause between two attempts to connect.
	minBackoff = 5 * time.Millisecond
	maxBackoff = 500 * time.Millisecond
	// stableAfter is the connection age after which the next attempt to connect is
	// immediate. After a younger connection that answered calls the pause is at most
	// maxQuickRetry, so that a node which keeps closing connections is dialled at most a
	// hundred times a second.
	stableAfter   = time.Second
	maxQuickRetry = 20 * time.Millisecond
)

// The reasons why a call was never sent.
var (
	errOverload = errors.New("send call: not sent in time")
	errDown     = error(brokenError{})
)

// pipeline is the connection to one node. It carries the calls of all client connections.
// While batches are in flight the next one fills, so that batches are as large as the load
// demands, without a timer. An idle pipeline sends a call at once, or at Flush all calls
// that were started together.
//
// An event loop, or the goroutine in run, reads the replies and answers the calls. A batch is
// encoded and sent by the goroutine that finds that it can be sent: a caller's, or the reader's.
type pipeline struct {
	script       script
	dial         func(context.Context) (*nodeConn, error)
	toLoop       func(*net.TCPConn) (Socket, error) // nil: a goroutine reads
	ioTimeout    time.Duration
	onFailure    func(error, []limit.Item) // called when a call stays undecided
	onScriptLoad func()                    // called when the script had to be loaded
	connAge      func() time.Duration      // the age at which a new connection is replaced, 0 for never
	report       func(error)               // health of the node; nil is healthy
	record       func(breaker.Outcome)     // results of calls

	// saturated means that more calls wait than a batch holds. unsent means that calls were
	// enqueued and no goroutine has tried to send them yet.
	saturated, unsent atomic.Bool

	// answered are node requests whose callers the reader has not notified yet: it notifies
	// them when it has nothing else to read, so that callers that waited together wake
	// together.
	answered    []*nodeRequest
	notifyLater func(*nodeRequest) // appends to answered

	mu       sync.Mutex   // guards the fields below, except a batch while its owner uses it
	conn     *nodeConn    // nil if there is no connection
	connErr  error        // reason for no connection: errDown or a downError
	shared   requestQueue // of calls that share commands with others
	alone    requestQueue // of calls that have commands of their own
	sending  bool         // a goroutine encodes or writes a batch
	free     []*batch     // without an owner
	inFlight []*batch     // written or being written, in this order
	resend   []*batch     // batches whose script was missing, to be sent once more
	traffic  traffic
	// next, unless nil, replaces conn when nothing is in flight. Nothing is sent meanwhile.
	next *nodeConn
}

// enqueue adds a node request to the queue, to be sent now or at the next trySend. Every
// enqueued request is answered.
func (p *pipeline) enqueue(nr *nodeRequest, now bool) {
	nr.open = len(nr.calls)
	p.mu.Lock()
	queue := &p.shared
	if nr.alone {
		queue = &p.alone
	}
	var why error
	switch {
	case p.conn == nil:
		why = p.connErr
	case queue.calls+len(nr.calls) > maxQueue:
		why = errOverload
	default:
		queue.add(nr)
		if p.shared.calls > maxBatch {
			p.saturated.Store(true)
		}
		now = now || queue.calls >= roomOf(nr.alone) // more calls would not fit into the batch
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

// refuse leaves the calls of a node request undecided.
func (p *pipeline) refuse(nr *nodeRequest, why error) {
	p.report(why)
	p.record(nr.unsent(why))
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

// trySend sends all batches that can be sent now. Only one goroutine sends at a time; the
// others rely on it to send their calls too.
func (p *pipeline) trySend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unsent.Store(false) // before reading the queue
	for !p.sending && p.canSend() {
		p.sending = true
		if len(p.resend) > 0 {
			p.sendAgain()
		} else {
			b := p.free[len(p.free)-1]
			p.free = p.free[:len(p.free)-1]
			p.dequeue(b)
			p.mu.Unlock()
			p.encode(b)
			p.mu.Lock()
			p.send(b, b.out)
		}
		p.sending = false
		if p.replaceable() {
			p.conn.wake() // the reply may have been read before
		}
	}
}

// canSend reports whether a batch can be sent: the first one at once, a second one if at
// least minPipelined calls wait, so that the node has work while a reply is read.
func (p *pipeline) canSend() bool {
	switch {
	case p.next != nil:
		return false
	case len(p.resend) > 0:
		return true
	case len(p.free) == 0 || len(p.shared.requests)+len(p.alone.requests) == 0:
		return false
	case len(p.inFlight) == 0 || p.conn == nil:
		return true
	default:
		return p.shared.calls+aloneCost*p.alone.calls >= minPipelined
	}
}

// dequeue moves node requests from the queues into a batch.
func (p *pipeline) dequeue(b *batch) {
	b.reset()
	if p.conn != nil {
		b.opts = p.conn.opts
	}
	p.shared.moveTo(b, maxBatch)
	p.alone.moveTo(b, maxAlone)
	if p.shared.calls < maxBatch/2 {
		p.saturated.Store(false)
	}
}

// encode adds the calls of the dequeued node requests to the batch and encodes it.
func (p *pipeline) encode(b *batch) {
	b.sentAt = time.Now()
	for _, nr := range b.requests {
		if !b.addRequest(nr, b.sentAt) {
			p.refuse(nr, errOverload)
		}
	}
	b.encode(p.script.sha)
}

// send writes out, the bytes of a batch. The caller holds mu; send releases it during the
// write, which does not wait for a node that does not read.
func (p *pipeline) send(b *batch, out []byte) {
	b.refs += 2 // this sender and the reader
	conn := p.conn
	if len(b.callers) == 0 || conn == nil {
		p.failUnsent(b)
		return
	}
	b.sentAt = time.Now()
	p.inFlight = append(p.inFlight, b)
	p.mu.Unlock()
	_, err := conn.out.Write(out)
	p.mu.Lock()
	if err != nil {
		conn.hangUp() // the reader notices, and fails the batch
	}
	p.release(b)
}

// sendAgain sends a batch once more, after its script. The caller holds mu, as for send.
func (p *pipeline) sendAgain() {
	b := p.resend[0]
	p.resend = append(p.resend[:0], p.resend[1:]...)
	b.refs-- // send counts the reader again
	p.send(b, b.encodeAgain(p.script))
}

// failUnsent fails a batch that cannot be sent, in place of its sender and of the reader. If it has no callers, all were
// refused before, and nothing failed. The caller holds mu; failUnsent releases it meanwhile.
func (p *pipeline) failUnsent(b *batch) {
	if len(b.callers) > 0 {
		p.mu.Unlock()
		p.fail(b, errDown, false)
		p.mu.Lock()
	}
	p.release(b)
	p.release(b)
}

// release is called by the sender and by the reader of a batch when they no longer use it:
// the last one frees it. The reader keeps a batch that is to be sent once more.
func (p *pipeline) release(b *batch) {
	if b.refs--; b.refs == 0 {
		p.free = append(p.free, b)
	}
}

// fail leaves every call of a batch undecided. sent reports whether the node may have
// executed them.
func (p *pipeline) fail(b *batch, why error, sent bool) {
	p.report(why)
	p.record(breaker.Outcome{Failed: len(b.requests), Err: why})
	for i := range b.commands {
		b.failCommand(&b.commands[i], why, sent, p.onFailure)
	}
}

// run keeps a connection open and reads its replies until ctx ends.
func (p *pipeline) run(ctx context.Context) {
	for pause := time.Duration(0); ctx.Err() == nil; run.Sleep(ctx, pause/2+rand.N(pause/2+1)) {
		pause = min(max(2*pause, minBackoff), maxBackoff)
		if err := p.connect(ctx); err != nil {
			p.setConnErr(err)
			p.report(err)
			continue
		}
		since := time.Now()
		settled, err := p.readUntilReplaced(ctx)
		if errors.Is(err, errReplaced) {
			p.replace()
			pause = 0
			continue
		}
		p.disconnect(err)
		if settled > 0 && time.Since(since) < stableAfter {
			pause = min(pause, maxQuickRetry)
		} else if settled > 0 {
			pause = 0
		}
	}
	p.disconnect(errDown)
}

// connected reports whether there is a connection.
func (p *pipeline) connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn != nil
}

// drop closes the connection, so that the next one begins with a check of the role.
func (p *pipeline) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		p.conn.hangUp()
	}
}

// connect opens the connection, unless there is one. run calls it, and so does
// topology.connect once before that.
func (p *pipeline) connect(ctx context.Context) error {
	if p.conn != nil {
		return nil
	}
	conn, err := p.open(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.conn = conn
	p.mu.Unlock()
	return nil
}

// open opens a connection that batches can be sent on, and read can read from.
func (p *pipeline) open(ctx context.Context) (*nodeConn, error) {
	conn, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.Conn.(*net.TCPConn); ok && p.toLoop != nil {
		if socket, err := p.toLoop(tcp); err == nil {
			conn.moveTo(socket)
			return conn, nil
		}
	}
	conn.unblock(p.ioTimeout)
	conn.in.OnTimeout, conn.in.BeforeRead = p.onReadTimeout, p.notifyAnswered
	_ = conn.SetReadDeadline(time.Now().Add(p.ioTimeout))
	return conn, nil
}

// setConnErr stores the reason why there is no connection.
func (p *pipeline) setConnErr(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil {
		p.connErr = &downError{why}
	}
}

// disconnect closes the connection and fails the calls that are in flight or queued.
func (p *pipeline) disconnect(why error) {
	p.mu.Lock()
	if p.conn != nil {
		p.conn.hangUp()
		p.conn, p.connErr = nil, &downError{why}
	}
	if p.next != nil {
		p.next.hangUp()
		p.next = nil
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
