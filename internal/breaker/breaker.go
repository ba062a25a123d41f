// Package breaker keeps callers away from a shard of the store that does not answer. A
// closed breaker costs one atomic load. An open one admits no call until its pause is
// over, and one single probe then. A probe whose outcome is never recorded does not keep
// the breaker half-open. Breakers that opened together probe at different times.
package breaker

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// State is the state of a breaker.
type State uint32

// The states.
const (
	Closed   State = iota // admits all calls
	Open                  // admits no call
	HalfOpen              // admits one probe
)

// String returns the word used in metrics and replies.
func (s State) String() string { return [...]string{"closed", "open", "half_open"}[s] }

const (
	// rowFailures is how many calls must fail without a success among them, and rowTime
	// over how long at least, for the breaker to open. A pause of this process makes many
	// calls fail at the same instant, and so does a connection that is lost and made
	// anew.
	rowFailures = 10
	rowTime     = 100 * time.Millisecond
	// window is the time over which the rate of failures is measured, in slots. The
	// breaker opens when at least minFailed calls failed and they are at least half of
	// all.
	window    = time.Second
	slots     = 10
	slotTime  = window / slots
	minFailed = 20
	// DefaultCooldown is the default of Options.Cooldown.
	DefaultCooldown = time.Second
	// DefaultProbeTimeout is the default of Options.ProbeTimeout.
	DefaultProbeTimeout = 250 * time.Millisecond
)

// Options configure a Breaker.
type Options struct {
	// Cooldown is how long the breaker stays open at least; up to a fifth of it is added
	// at random, each time anew.
	Cooldown time.Duration
	// ProbeTimeout is how long the breaker waits for the outcome of a probe.
	ProbeTimeout time.Duration
	// Changed, unless nil, is called after each transition, one at a time. It must not
	// call the breaker.
	Changed func(Transition)
	// Random returns a number from 0 to 1; nil means a source that differs between
	// processes.
	Random func() float64
}

// Transition is a change of state.
type Transition struct {
	From, To State
	// Outage is the time from the first failed call to the first that succeeded, if To is
	// Closed.
	Outage time.Duration
	// Err is the error of the failure that opened the breaker. It is set if From is Closed.
	Err error
}

// Breaker is the breaker of one shard. It is safe for concurrent use.
type Breaker struct {
	opts  Options
	state atomic.Uint32

	mu    sync.Mutex // guards the fields below
	until time.Time  // open: end of the pause; half-open: when the probe counts as lost
	row   int        // failures since the last success
	first time.Time  // the first of them
	last  error      // the error of the last of them, nil if there is none
	slots [slots]slot
	epoch time.Time // start of slot number 0
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

// Allow reports whether a call may be made now. The caller must pass the outcome of a
// probe to Record.
func (b *Breaker) Allow(now time.Time) bool {
	if State(b.state.Load()) == Closed {
		return true
	}
	return b.probe(now)
}

// probe reports whether the call may be made: as the probe, unless the breaker is closed.
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

// Outcome is the outcome of calls.
type Outcome struct {
	// OK is how many calls were answered in time.
	OK int
	// Failed is how many calls were sent and got an error, or no answer in time. Stuck is
	// how many were not even sent in time, which is normal for an overloaded shard.
	Failed, Stuck int
	Err           error // of the last that failed; set if Failed or Stuck is above 0
}

// Record records the outcome of calls.
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
		if b.row = 0; state == Closed { // otherwise it is the error that opened the breaker
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
		// Only a failure opens the breaker: when successes leave the window, the part of failures can reach a half
		// in an outcome that has no error for the transition.
		if o.Failed+o.Stuck > 0 && (b.row >= rowFailures && now.Sub(b.first) >= rowTime || failed >= minFailed && failed >= ok) {
			b.open(now)
		}
	} else if state == HalfOpen && o.OK == 0 {
		b.open(now)
	}
}

// Forget ends a state that a closed breaker reports: Err of Status is nil from now on if past returns true
// for it. The failures still count.
func (b *Breaker) Forget(past func(error) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if State(b.state.Load()) == Closed && b.last != nil && past(b.last) {
		b.last = nil
	}
}

// count counts an outcome, and returns the calls in the window.
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

// open opens the breaker for the cooldown and up to a fifth more. The caller holds mu.
func (b *Breaker) open(now time.Time) {
	pause := b.opts.Cooldown + time.Duration(b.opts.Random()*float64(b.opts.Cooldown)/5)
	b.until = now.Add(pause)
	b.change(Transition{From: State(b.state.Load()), To: Open, Err: b.last})
}

// close closes the breaker. The caller holds mu.
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

// Status is the status of a breaker.
type Status struct {
	State State
	// Err is the error of the last call that failed, or nil if none failed since one
	// succeeded.
	Err error
	// Probe is when the next probe is admitted, if the breaker is open, and Since when the
	// first call failed of those since a success, if Err is set or the breaker is not closed.
	Probe, Since time.Time
}

// Status returns the present status.
func (b *Breaker) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := Status{State: State(b.state.Load()), Err: b.last, Since: b.first}
	if st.State != Closed {
		st.Probe = b.until
	}
	return st
}
