package cluster

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/limitgate/limitgate/internal/resp"
)

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
