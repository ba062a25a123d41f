package cluster

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/limit"
)

// The replies of a node are read in an event loop, or by TLS in a goroutine.

// read answers batches as their replies arrive. It returns the number of batches and the
// reason why no more can be read.
func (p *pipeline) read() (settled int, err error) {
	if p.conn.socket != nil {
		return p.readInLoop(p.conn)
	}
	in := p.conn.in
	defer p.notifyAnswered()
	for ; ; settled++ {
		if err := in.Await(); err != nil {
			return settled, err
		}
		b := p.oldestInFlight()
		if b == nil {
			return settled, resp.ErrReply
		}
		for done := false; !done; {
			if done, err = p.readNext(b, in); err != nil {
				return settled, err
			}
		}
		if err := p.settle(b); err != nil {
			return settled + 1, err
		}
	}
}

// maxReply bounds the reply to one command, in bytes: six numbers for each of 64 limits of 256
// calls, or the longest string.
const maxReply = 4 << 20

// loopReader reads the replies of a connection in an event loop, as they arrive. A command's
// reply is read when all of it has arrived, so that a slow node delays no other.
type loopReader struct {
	p        *pipeline
	in       *resp.Reader
	follower resp.Follower
	complete int // replies that have arrived and were not read yet
	settled  int // batches
}

// readInLoop has the event loop read, and waits until no more can be read. It returns the number
// of batches that were read, and the reason.
func (p *pipeline) readInLoop(conn *nodeConn) (settled int, err error) {
	r := &loopReader{p: p, in: conn.in}
	ended := make(chan error, 1)
	conn.socket.Watch(r.onReadable, func(err error) { ended <- err })
	timer := time.NewTimer(p.ioTimeout)
	defer timer.Stop()
	for why := error(nil); ; {
		select {
		case err := <-ended:
			if why != nil {
				err = why
			}
			return r.settled, err
		case <-conn.woken:
		case <-timer.C:
		}
		p.mu.Lock()
		by, err := p.deadline()
		p.mu.Unlock()
		if err != nil && why == nil {
			why = err
			conn.hangUp()
		}
		timer.Reset(max(time.Until(by), time.Millisecond))
	}
}

// onReadable reads what has arrived. It is called by the loop.
func (r *loopReader) onReadable() error {
	before := len(r.in.Buffered())
	err := r.in.Fill()
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) {
		return nil
	}
	if err != nil {
		return err
	}
	ended, err := r.follower.Follow(r.in.Buffered()[before:])
	if err != nil {
		return err
	}
	r.complete += ended
	err = r.answer()
	r.p.notifyAnswered()
	if err == nil && len(r.in.Buffered()) > maxReply {
		err = fmt.Errorf("%w: more than %d bytes", resp.ErrReply, maxReply)
	}
	return err
}

// answer answers the batches whose replies have arrived.
func (r *loopReader) answer() error {
	for len(r.in.Buffered()) > 0 {
		b := r.p.oldestInFlight()
		if b == nil {
			return resp.ErrReply
		}
		for done := false; !done; {
			n := b.nextReplies()
			if r.complete < n {
				return nil
			}
			r.complete -= n
			var err error
			if done, err = r.p.readNext(b, r.in); err != nil {
				return err
			}
		}
		r.settled++
		if err := r.p.settle(b); err != nil {
			return err
		}
	}
	return nil
}

// oldestInFlight returns the batch whose replies come next, or nil.
func (p *pipeline) oldestInFlight() *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.inFlight) == 0 {
		return nil
	}
	return p.inFlight[0]
}

// deadline returns when the reader looks again whether a reply is overdue. It returns an error
// if one is, or if the connection is to be replaced now. The caller holds mu.
func (p *pipeline) deadline() (time.Time, error) {
	from := time.Now()
	switch {
	case p.replaceable():
		return from, errReplaced
	case len(p.inFlight) == 0:
	case from.Sub(p.inFlight[0].sentAt) >= p.ioTimeout:
		return from, errOverdue
	default:
		from = p.inFlight[0].sentAt
	}
	return from.Add(p.ioTimeout), nil
}

// onReadTimeout handles a read that timed out. It returns an error if nothing more can be
// read. It holds mu until the deadline is set, so that it does not undo that of a wake.
func (p *pipeline) onReadTimeout() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	by, err := p.deadline()
	if err != nil {
		return err
	}
	return p.conn.SetReadDeadline(by)
}

// settle takes a batch whose replies have been read out of flight, and sends what waits for
// that. It returns errReplaced if the connection is to be replaced now.
func (p *pipeline) settle(b *batch) error {
	p.mu.Lock()
	p.inFlight = append(p.inFlight[:0], p.inFlight[1:]...)
	if b.toResend() {
		p.resend = append(p.resend, b) // the reader keeps its reference
	} else {
		p.traffic.count(b)
		p.release(b)
	}
	replaced := p.replaceable()
	p.mu.Unlock()
	if replaced {
		return errReplaced
	}
	p.trySend()
	return nil
}

// notifyAnswered notifies the callers of answered node requests.
func (p *pipeline) notifyAnswered() {
	for _, nr := range p.answered {
		nr.notifyDone()
	}
	clear(p.answered)
	p.answered = p.answered[:0]
}

// maxResends is how often a batch is sent again because its script was flushed: each time
// takes one more flush in the fraction of a millisecond between two commands.
const maxResends = 8

// failureOf returns the function that counts a call which the replies to a batch leave
// undecided.
func (p *pipeline) failureOf(b *batch) func(error, []limit.Item) {
	return func(err error, items []limit.Item) {
		kind := kindOf(err)
		if !kind.ofBucket() {
			b.lastErr = err
		}
		if kind.countsAgainstNode() {
			b.failed++
		} else {
			b.inTime++
		}
		p.onFailure(err, items)
	}
}

// readNext reads the reply to the next command of a batch, and answers its calls. done means
// that it was the last one. Commands that failed with NOSCRIPT did not run: they are to be
// sent once more then, after the script.
func (p *pipeline) readNext(b *batch, in *resp.Reader) (done bool, err error) {
	b.notify = p.notifyLater
	err = b.readNext(in)
	b.notify = (*nodeRequest).notifyDone
	if err != nil || !b.allRead() {
		return false, err
	}
	p.report(b.lastErr)
	p.record(breaker.Outcome{OK: b.inTime, Failed: b.failed, Err: b.lastErr})
	b.lastErr, b.failed, b.inTime = nil, 0, 0
	if b.missing != nil {
		b.again, b.missing, b.read = b.missing, nil, 0
		b.resends++
		p.onScriptLoad()
	}
	return true, nil
}

// encodeAgain encodes the script and the commands that failed without it. It must be called by
// the sender: a reply may be read before the write of its command has returned.
func (b *batch) encodeAgain(s script) []byte {
	b.resend = resp.AppendCommand(b.resend[:0], "SCRIPT", "LOAD", s.text)
	for _, i := range b.again {
		b.resend = append(b.resend, b.out[b.commands[i].start:b.commands[i].end]...)
	}
	return b.resend
}

// toResend reports whether readNext has prepared to send the batch once more.
func (b *batch) toResend() bool { return b.again != nil && b.read == 0 }

// nextCommand returns the index of the command whose reply comes next, or -1 for that to SCRIPT
// LOAD.
func (b *batch) nextCommand() int {
	switch {
	case b.again == nil:
		return b.read
	case b.read == 0:
		return -1
	default:
		return b.again[b.read-1]
	}
}

// allRead reports whether all replies were read.
func (b *batch) allRead() bool {
	if b.again == nil {
		return b.read == len(b.commands)
	}
	return b.read == len(b.again)+1
}

// nextReplies returns how many replies readNext reads.
func (b *batch) nextReplies() int {
	if i := b.nextCommand(); i >= 0 && b.commands[i].route.asking {
		return 2
	}
	return 1
}

// readNext reads the reply to the next command. It notes in b.missing a command that failed
// with NOSCRIPT, and calls b.onFailure with each call that stays undecided.
func (b *batch) readNext(in *resp.Reader) error {
	i := b.nextCommand()
	b.read++
	if i < 0 {
		_, err := in.Strings()
		return err
	}
	if b.commands[i].route.asking {
		if _, err := in.Line(); err != nil {
			return err
		}
	}
	none, err := in.StartsWith("-NOSCRIPT")
	switch {
	case err != nil:
		return err
	case none && b.resends < maxResends:
		b.missing = append(b.missing, i)
		_, err = in.Line()
		return err
	default:
		return b.readReply(&b.commands[i], in, b.onFailure)
	}
}
