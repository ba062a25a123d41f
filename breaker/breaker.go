// Package breaker keeps callers away from a shard of the store that does not
// answer. It promises that a closed breaker costs one atomic load; that an open
// one lets nobody through until its pause is over, and one single probe then; that
// a probe whose outcome is never told does not keep it half-open; and that
// breakers which opened together probe apart.
package breaker

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// State is what a breaker lets through.
type State uint32

// The states.
const (
	Closed   State = iota // everything
	Open                  // nothing
	HalfOpen              // one probe
)

// String returns the word used in metrics and replies.
func (s State) String() string { return [...]string{"closed", "open", "half_open"}[s] }

const (
	// rowFailures and rowTime are how many calls must fail, over how long at the
	// least, with no success among them, for the breaker to open: a pause of this
	// process makes many calls fail at the same instant, and so does a connection
	// that is lost and made anew.
	rowFailures = 10
	rowTime     = 100 * time.Millisecond
	// window is how far back the rate of failures is measured, in slots; it opens
	// the breaker from minFailed failures on that are half of all.
	window    = time.Second
	slots     = 10
	slotTime  = window / slots
	minFailed = 20
	// DefaultCooldown is that of Options.
	DefaultCooldown = time.Second
	// DefaultProbeTimeout is that of Options.
	DefaultProbeTimeout = 250 * time.Millisecond
)

// Options configure a Breaker.
type Options struct {
	// Cooldown is how long it stays open at the least; up to a fifth of it is added
	// at random, each time anew.
	Cooldown time.Duration
	// ProbeTimeout is how long the outcome of a probe is waited for.
	ProbeTimeout time.Duration
	// Changed, unless nil, is called after each transition, one at a time. It must
	// not call the breaker.
	Changed func(Transition)
	// Random returns a number from 0 to 1; nil means one that differs between
	// processes.
	Random func() float64
}

// Transition is a change of state.
type Transition struct {
	From, To State
	// Outage is the time from the first failed call to the first that succeeded,
	// where To is Closed.
	Outage time.Duration
	// Err is why it opened.
	Err error
}

// Breaker is that of one shard. Any number of goroutines may use it.
type Breaker struct {
	opts  Options
	state atomic.Uint32

	mu    sync.Mutex // guards what follows
	until time.Time  // open: of the pause; half-open: the probe is lost then
	row   int        // failures since the last success
	first time.Time  // the first of them
	last  error      // the last of them, nil without
	slots [slots]slot
	epoch time.Time // slots are numbered from there
}

// slot counts the calls of a tenth of the window.
type slot struct {
	number     int64
	ok, failed int
}

// New returns a closed breaker.
func New(opts Options) *Breaker {
	if opts.Cooldown <= 0 {
		opts.Cooldown = DefaultCooldown
	}
	if opts.ProbeTimeout <= 0 {
		opts.ProbeTimeout = DefaultProbeTimeout
	}
	if opts.Changed == nil {
		opts.Changed = func(Transition) {}
	}
	if opts.Random == nil {
		opts.Random = rand.Float64
	}
	return &Breaker{opts: opts}
}

// Allow reports whether a call may be made now. One that is the probe must be
// told of by Record.
func (b *Breaker) Allow(now time.Time) bool {
	if State(b.state.Load()) == Closed {
		return true
	}
	return b.probe(now)
}

// probe reports whether the call is the probe.
func (b *Breaker) probe(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch state := State(b.state.Load()); {
	case state == Closed:
		return true
	case now.Before(b.until):
		return false
	case state == HalfOpen: // the probe is lost
		b.open(now)
		return false
	default:
		b.until = now.Add(b.opts.ProbeTimeout)
		b.change(Transition{From: Open, To: HalfOpen})
		return true
	}
}

// Outcome is what became of calls.
type Outcome struct {
	// OK were answered in time.
	OK int
	// Failed were not, though they were sent: an error, or no answer in time. Stuck
	// were not even sent in time, which is no wonder where the shard is overloaded.
	Failed, Stuck int
	Err           error // of the last that failed
}

// Record tells what became of calls.
func (b *Breaker) Record(now time.Time, o Outcome) {
	if o.OK+o.Failed+o.Stuck == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	state := State(b.state.Load())
	if o.OK > 0 {
		if state == HalfOpen {
			b.close(now)
			return
		}
		if b.row = 0; state == Closed { // else it is why it opened
			b.last = nil
		}
	}
	if o.Failed+o.Stuck > 0 {
		if b.row == 0 {
			b.first = now
		}
		b.row, b.last = b.row+o.Failed+o.Stuck, o.Err
	}
	if state == Closed {
		ok, failed := b.count(now, o)
		if b.row >= rowFailures && now.Sub(b.first) >= rowTime || failed >= minFailed && failed >= ok {
			b.open(now)
		}
	} else if state == HalfOpen && o.OK == 0 {
		b.open(now)
	}
}

// count counts an outcome, and returns what there was in the window.
func (b *Breaker) count(now time.Time, o Outcome) (ok, failed int) {
	if b.epoch.IsZero() {
		b.epoch = now
	}
	number := int64(max(0, now.Sub(b.epoch)) / slotTime)
	s := &b.slots[number%slots]
	if s.number != number {
		*s = slot{number: number}
	}
	s.ok, s.failed = s.ok+o.OK, s.failed+o.Failed
	for i := range b.slots {
		if s := &b.slots[i]; s.number > number-slots && s.number <= number {
			ok, failed = ok+s.ok, failed+s.failed
		}
	}
	return ok, failed
}

// open opens the breaker for the cooldown and up to a fifth more. It is called
// with mu held.
func (b *Breaker) open(now time.Time) {
	pause := b.opts.Cooldown + time.Duration(b.opts.Random()*float64(b.opts.Cooldown)/5)
	b.until = now.Add(pause)
	b.change(Transition{From: State(b.state.Load()), To: Open, Err: b.last})
}

// close closes it. It is called with mu held.
func (b *Breaker) close(now time.Time) {
	outage := now.Sub(b.first)
	b.row, b.last, b.slots = 0, nil, [slots]slot{}
	b.change(Transition{From: HalfOpen, To: Closed, Outage: outage})
}

func (b *Breaker) change(t Transition) {
	b.state.Store(uint32(t.To))
	b.opts.Changed(t)
}

// State returns the present state.
func (b *Breaker) State() State { return State(b.state.Load()) }

// Status is what there is to tell of a breaker.
type Status struct {
	State State
	// Err is why the last call failed, or nil where none did since one succeeded.
	Err error
	// Probe is when the next probe is let through, where it is open, and Since when the
	// first call failed.
	Probe, Since time.Time
}

// Status returns the present status.
func (b *Breaker) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := Status{State: State(b.state.Load()), Err: b.last}
	if st.State != Closed {
		st.Probe, st.Since = b.until, b.first
	}
	return st
}
