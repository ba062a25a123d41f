package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/limitgate/limitgate/limit"
)

const (
	// maxQueue is how many calls may wait in a lane: a node needs a few
	// milliseconds for as many, and nobody waits longer than that.
	maxQueue = 4096
	// minBackoff and maxBackoff bound the pause between two attempts to connect.
	minBackoff = 5 * time.Millisecond
	maxBackoff = 500 * time.Millisecond
)

// Why a call was never sent.
var (
	errOverload = errors.New("send call: its turn did not come in time")
	errDown     = fmt.Errorf("send call: no connection: %w", net.ErrClosed)
)

// lane is the way to one node: the calls of all connections meet in it. While
// one flight is on its way the next one gathers, so that batches are as large
// as the load demands, without a timer; an idle lane sends at once.
//
// One goroutine, in run, reads the replies. The flight belongs in turn to whoever
// found the lane idle, who fills and sends it, and to the reader, who settles it
// and sends the next one.
type lane struct {
	addr   string
	script script
	dial   func(context.Context) (*link, error)
	ioTime time.Duration
	tell   func(error, []limit.Item) // a call stays undecided
	loads  func()                    // the script had to be loaded
	report func(error)               // how the node is; nil is well
	flight flight

	mu     sync.Mutex // guards what follows
	link   *link      // nil without a connection
	queue  []*ticket
	queued int // calls in queue
	// busy says that somebody owns the flight; under way, that a reply is awaited.
	busy, underWay bool
	// writing says that its sender has not returned from writing; handedOver,
	// that the reader is done with it already and the sender shall go on.
	writing, handedOver bool
	sentAt              time.Time
}

// link is a connection to a node, and how calls are put together for it.
type link struct {
	net.Conn
	in   *replies
	opts flightOptions
}

// hangUp ends the connection, which its reader will notice.
func (l *link) hangUp() { _ = l.Close() }

// submit hands a ticket to the lane. It is answered in any case.
func (l *lane) submit(t *ticket) {
	t.open = len(t.calls)
	l.mu.Lock()
	switch {
	case l.link == nil:
		l.mu.Unlock()
		l.refuse(t, errDown)
		return
	case l.queued+len(t.calls) > maxQueue:
		l.mu.Unlock()
		l.refuse(t, errOverload)
		return
	}
	l.queue = append(l.queue, t)
	l.queued += len(t.calls)
	if l.busy {
		l.mu.Unlock()
		return
	}
	l.busy = true
	l.mu.Unlock()
	l.next()
}

// refuse leaves a ticket's calls undecided.
func (l *lane) refuse(t *ticket, why error) {
	l.report(why)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.calls {
		if !t.left {
			l.tell(why, t.items[c.First:c.Last])
		}
		t.answered()
	}
}

// next sends what has gathered. It is called by whoever owns the flight.
func (l *lane) next() {
	for l.gather() {
		l.flight.encode(l.script.sha)
		if !l.send() {
			continue
		}
		return
	}
}

// gather fills the flight from the queue. With an empty queue the lane falls
// idle, and it reports false.
func (l *lane) gather() bool {
	f := &l.flight
	f.reset()
	now := time.Now()
	l.mu.Lock()
	if l.link != nil {
		f.opts = l.link.opts
	}
	n, calls := 0, 0
	for n < len(l.queue) && (n == 0 || calls+len(l.queue[n].calls) <= maxFlight) {
		calls += len(l.queue[n].calls)
		f.tickets = append(f.tickets, l.queue[n])
		n++
	}
	l.queued -= calls
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	l.busy = n > 0
	l.mu.Unlock()
	if n == 0 {
		return false // the flight is no longer ours
	}
	for _, t := range f.tickets {
		if !f.board(t, now) {
			l.refuse(t, errOverload)
		}
	}
	return true
}

// send sends the flight. It reports false when there is nothing to wait for.
func (l *lane) send() bool {
	if len(l.flight.members) == 0 {
		return false
	}
	l.mu.Lock()
	link := l.link
	if link == nil {
		l.mu.Unlock()
		l.fail(errDown)
		return false
	}
	l.underWay, l.writing, l.sentAt = true, true, time.Now()
	l.mu.Unlock()
	if _, err := link.Write(l.flight.out); err != nil {
		_ = link.Close() // the reader sees it, and fails the flight
	}
	l.mu.Lock()
	l.writing = false
	mine := l.handedOver
	l.handedOver = false
	l.mu.Unlock()
	return !mine
}

// landed ends a flight that is settled or has failed, and sends the next one,
// unless the sender of this one has not returned yet: then it will.
func (l *lane) landed() {
	l.mu.Lock()
	l.underWay = false
	l.handedOver = l.writing
	mine := !l.handedOver
	l.mu.Unlock()
	if mine {
		l.next()
	}
}

// fail leaves every call of the flight undecided.
func (l *lane) fail(why error) {
	l.report(why)
	for i := range l.flight.commands {
		l.flight.failCommand(&l.flight.commands[i], why, l.tell)
	}
}

// run keeps a connection and reads its replies until ctx ends.
func (l *lane) run(ctx context.Context) {
	pause := time.Duration(0)
	for ctx.Err() == nil {
		if err := l.connect(ctx); err != nil {
			l.report(err)
			pause = min(max(2*pause, minBackoff), maxBackoff)
			wait(ctx, pause/2+rand.N(pause/2))
			continue
		}
		pause = 0
		stop := context.AfterFunc(ctx, l.link.hangUp)
		err := l.read()
		stop()
		l.lose(err)
	}
	l.lose(errDown)
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
func (l *lane) connect(ctx context.Context) error {
	if l.link != nil {
		return nil
	}
	link, err := l.dial(ctx)
	if err != nil {
		return err
	}
	link.in.patience = l.patience
	_ = link.SetReadDeadline(time.Now().Add(l.ioTime))
	l.mu.Lock()
	l.link = link
	l.mu.Unlock()
	return nil
}

// lose ends the connection, and answers what was on its way or waits for it.
func (l *lane) lose(why error) {
	l.mu.Lock()
	if l.link != nil {
		_ = l.link.Close()
		l.link = nil
	}
	underWay, idle := l.underWay, !l.busy
	l.busy = true
	l.mu.Unlock()
	switch {
	case underWay:
		l.fail(why)
		l.landed()
	case idle:
		l.next()
	}
}

// patience decides what a read that timed out means: nothing, unless a reply is
// overdue.
func (l *lane) patience() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := time.Now()
	if l.underWay {
		if from.Sub(l.sentAt) >= l.ioTime {
			return errOverdue
		}
		from = l.sentAt
	}
	return l.link.SetReadDeadline(from.Add(l.ioTime))
}

// read settles flights as their replies arrive. It returns why no more can be
// read.
func (l *lane) read() error {
	in := l.link.in
	for {
		if err := in.await(); err != nil {
			return err
		}
		l.mu.Lock()
		expected := l.underWay
		l.mu.Unlock()
		if !expected {
			return errReply
		}
		if err := l.settle(in); err != nil {
			return err
		}
		l.landed()
	}
}

// settle reads the replies to the flight. Commands that found no script did not
// run: it is loaded and they are sent once more.
func (l *lane) settle(in *replies) error {
	f := &l.flight
	var missing []int
	var last error
	tell := func(err error, items []limit.Item) {
		last = err
		l.tell(err, items)
	}
	for i := range f.commands {
		if none, err := in.startsWith("-NOSCRIPT"); err != nil {
			return err
		} else if none {
			missing = append(missing, i)
			_, _ = in.line()
			continue
		}
		if err := f.settle(&f.commands[i], in, tell); err != nil {
			return err
		}
	}
	if missing != nil {
		if err := l.heal(in, missing, tell); err != nil {
			return err
		}
	}
	l.report(last)
	return nil
}

// heal loads the script and sends the commands that missed it.
func (l *lane) heal(in *replies, missing []int, tell func(error, []limit.Item)) error {
	f := &l.flight
	l.loads()
	out := appendCommand(nil, "SCRIPT", "LOAD", l.script.text)
	for _, i := range missing {
		out = append(out, f.out[f.commands[i].start:f.commands[i].end]...)
	}
	if _, err := l.link.Write(out); err != nil {
		return err
	}
	if line, err := in.line(); err != nil {
		return err
	} else if _, err := in.text(line); err != nil {
		return err
	}
	for _, i := range missing {
		if err := f.settle(&f.commands[i], in, tell); err != nil {
			return err
		}
	}
	return nil
}
