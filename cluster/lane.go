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
	// maxAway is how many flights may be on their way: while the reply to one is
	// read the node works on the other. A third would only wait there.
	maxAway = 2
	// worthwhile is how many calls must wait for a second flight to leave. With
	// fewer, waiting for the first makes batches larger at no cost.
	worthwhile = maxFlight / 8
	// writePatience is how long a caller waits for a batch to be taken from it.
	writePatience = time.Millisecond
	// minBackoff and maxBackoff bound the pause between two attempts to connect.
	minBackoff = 5 * time.Millisecond
	maxBackoff = 500 * time.Millisecond
	// steady is how long a connection must have lasted for the next attempt to come at
	// once; after one that was of use for a shorter time the pause is at most hasty, so
	// that a node which hangs up again and again is dialled a hundred times a second.
	steady = time.Second
	hasty  = 20 * time.Millisecond
)

// Why a call was never sent.
var (
	errOverload = errors.New("send call: its turn did not come in time")
	errDown     = fmt.Errorf("send call: no connection: %w", net.ErrClosed)
)

// lane is the way to one node: the calls of all connections meet in it. While
// flights are on their way the next one gathers, so that batches are as large as
// the load demands, without a timer; an idle lane sends at once what it is given,
// or at Flush what was begun together.
//
// One goroutine, in run, reads the replies and settles the flights. They are
// filled and sent by whoever finds that one may leave: a caller, or the reader.
type lane struct {
	script script
	dial   func(context.Context) (*link, error)
	ioTime time.Duration
	tell   func(error, []limit.Item) // a call stays undecided
	loads  func()                    // the script had to be loaded
	report func(error)               // how the node is; nil is well
	record func(breaker.Outcome)     // what became of calls

	// saturated says that more calls wait than a flight holds, and held that some
	// were submitted which nobody has tried to send.
	saturated, held atomic.Bool

	// answered are tickets whose callers the reader has yet to tell: it does when it
	// has nothing else to do, so that those who waited together wake together.
	answered    []*ticket
	finishLater func(*ticket) // appends to answered

	// rests are the goroutines that go on sending what did not leave at once.
	rests sync.WaitGroup

	mu      sync.Mutex // guards what follows, but for what an owner does to its flight
	link    *link      // nil without a connection
	why     error      // there is none: errDown, or a downError
	queue   []*ticket
	queued  int       // calls in queue
	filling bool      // somebody fills or writes a flight
	free    []*flight // nobody's
	away    []*flight // written or being written, in their order
	again   []*flight // whose script was missing, to be sent once more
}

// link is a connection to a node, and how calls are put together for it.
type link struct {
	net.Conn
	in   *replies
	opts flightOptions
}

// hangUp ends the connection, which its reader will notice.
func (l *link) hangUp() { _ = l.Close() }

// submit hands a ticket to the lane, to be sent now or when pump is called. It is
// answered in any case.
func (l *lane) submit(t *ticket, now bool) {
	t.open = len(t.calls)
	l.mu.Lock()
	var why error
	switch {
	case l.link == nil:
		why = l.why
	case l.queued+len(t.calls) > maxQueue:
		why = errOverload
	default:
		l.queue = append(l.queue, t)
		l.queued += len(t.calls)
		if l.queued > maxFlight {
			l.saturated.Store(true)
		}
		now = now || l.queued >= maxFlight // more would not travel together
	}
	l.mu.Unlock()
	switch {
	case why != nil:
		l.refuse(t, why)
	case now:
		l.pump()
	default:
		l.held.Store(true)
	}
}

// refuse leaves a ticket's calls undecided.
func (l *lane) refuse(t *ticket, why error) {
	l.report(why)
	l.record(breaker.Outcome{Stuck: 1, Err: why})
	t.mu.Lock()
	last := false
	for _, c := range t.calls {
		if !t.left {
			l.tell(why, t.items[c.First:c.Last])
		}
		last = t.answered()
	}
	t.mu.Unlock()
	if last {
		t.finished()
	}
}

// pump sends what may leave now. Only one goroutine does at a time; the others
// can rely on it.
func (l *lane) pump() {
	l.held.Store(false) // before the queue is looked at
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.filling && l.mayLeave() {
		l.filling = true
		var sent bool
		if len(l.again) > 0 {
			f := l.again[0]
			l.again = append(l.again[:0], l.again[1:]...)
			f.users-- // send counts its reader
			sent = l.send(f, f.heal)
		} else {
			f := l.free[len(l.free)-1]
			l.free = l.free[:len(l.free)-1]
			l.gather(f)
			l.mu.Unlock()
			l.fill(f)
			l.mu.Lock()
			sent = l.send(f, f.out)
		}
		l.filling = !sent
	}
}

// mayLeave reports whether a flight may leave: the first at once, another one
// when it is worth while, so that the node has work while a reply is read.
func (l *lane) mayLeave() bool {
	switch {
	case len(l.again) > 0:
		return true
	case len(l.queue) == 0 || len(l.free) == 0:
		return false
	case len(l.away) == 0 || l.link == nil:
		return true
	default:
		return l.queued >= worthwhile
	}
}

// gather moves tickets from the queue into a flight.
func (l *lane) gather(f *flight) {
	f.reset()
	if l.link != nil {
		f.opts = l.link.opts
	}
	n, calls := 0, 0
	for n < len(l.queue) && (n == 0 || calls+len(l.queue[n].calls) <= maxFlight) {
		calls += len(l.queue[n].calls)
		n++
	}
	f.tickets = append(f.tickets, l.queue[:n]...)
	l.queued -= calls
	if l.queued < maxFlight/2 {
		l.saturated.Store(false)
	}
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
}

// fill puts the calls of a flight's tickets together and encodes them.
func (l *lane) fill(f *flight) {
	f.sentAt = time.Now()
	for _, t := range f.tickets {
		if !f.board(t, f.sentAt) {
			l.refuse(t, errOverload)
		}
	}
	f.encode(l.script.sha)
}

// send sends a flight, as out. It is called with mu held, and lets go of it
// meanwhile. A node that does not read must not hold up the caller who sends:
// then the rest is written in the background, and send reports that it is not
// done.
func (l *lane) send(f *flight, out []byte) (done bool) {
	f.users += 2 // this sender and the reader
	link := l.link
	if len(f.members) > 0 && link != nil {
		f.sentAt = time.Now()
		l.away = append(l.away, f)
		l.mu.Unlock()
		_ = link.SetWriteDeadline(f.sentAt.Add(writePatience))
		n, err := link.Write(out)
		l.mu.Lock()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			l.rests.Go(func() { l.sendRest(link, f, out[n:]) })
			return false
		}
		if err != nil {
			link.hangUp() // the reader sees it, and fails the flight
		}
		l.leave(f)
		return true
	}
	l.mu.Unlock()
	l.fail(f, errDown, false)
	l.mu.Lock()
	l.leave(f)
	l.leave(f)
	return true
}

// sendRest goes on with what send began.
func (l *lane) sendRest(link *link, f *flight, rest []byte) {
	_ = link.SetWriteDeadline(time.Now().Add(l.ioTime))
	if _, err := link.Write(rest); err != nil {
		link.hangUp()
	}
	l.mu.Lock()
	l.leave(f)
	l.filling = false
	l.mu.Unlock()
	l.pump()
}

// leave is called by the sender of a flight and by its reader when they need it
// no longer: the last one sets it free. A flight that is to be sent once more is
// needed by its reader.
func (l *lane) leave(f *flight) {
	if f.users--; f.users == 0 {
		l.free = append(l.free, f)
	}
}

// fail leaves every call of a flight undecided. What was sent may have been
// executed all the same.
func (l *lane) fail(f *flight, why error, sent bool) {
	l.report(why)
	l.record(breaker.Outcome{Failed: len(f.tickets), Err: why})
	for i := range f.commands {
		f.failCommand(&f.commands[i], why, sent, l.tell)
	}
}

// run keeps a connection and reads its replies until ctx ends.
func (l *lane) run(ctx context.Context) {
	for pause := time.Duration(0); ctx.Err() == nil; wait(ctx, pause/2+rand.N(pause/2+1)) {
		pause = min(max(2*pause, minBackoff), maxBackoff)
		if err := l.connect(ctx); err != nil {
			l.down(err)
			l.report(err)
			continue
		}
		stop := context.AfterFunc(ctx, l.link.hangUp)
		since := time.Now()
		settled, err := l.read()
		stop()
		l.lose(err)
		if settled > 0 && time.Since(since) < steady {
			pause = min(pause, hasty)
		} else if settled > 0 {
			pause = 0
		}
	}
	l.lose(errDown)
	l.rests.Wait()
}

// connected reports whether there is a connection.
func (l *lane) connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.link != nil
}

// drop ends the connection, so that the next one begins with asking for the role.
func (l *lane) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.link != nil {
		l.link.hangUp()
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
func (l *lane) connect(ctx context.Context) error {
	if l.link != nil {
		return nil
	}
	link, err := l.dial(ctx)
	if err != nil {
		return err
	}
	link.in.patience, link.in.waiting = l.patience, l.tellAnswered
	_ = link.SetReadDeadline(time.Now().Add(l.ioTime))
	l.mu.Lock()
	l.link = link
	l.mu.Unlock()
	return nil
}

// down notes why there is no connection.
func (l *lane) down(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.link == nil {
		l.why = &downError{why}
	}
}

// lose ends the connection, and answers what was on its way or waits for it.
func (l *lane) lose(why error) {
	l.mu.Lock()
	if l.link != nil {
		_ = l.link.Close()
		l.link, l.why = nil, &downError{why}
	}
	away := l.away
	l.away = nil
	l.mu.Unlock()
	for _, f := range away {
		l.fail(f, why, true)
		l.mu.Lock()
		l.leave(f)
		l.mu.Unlock()
	}
	l.pump()
}
