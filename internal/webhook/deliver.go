package webhook

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/internal/run"
)

// An event is tried maxAttempts times. The pauses between are 1, 2, 4, 8, 16, 16 and 16 s, each half
// as much more or less by chance: about a minute in all, in which a receiver restarts, if it answers
// at once.
const (
	maxAttempts = 8
	firstPause  = time.Second
	maxPause    = 16 * time.Second
)

// graceTime is how long events are delivered after the end of Run's context.
const graceTime = time.Second

// Run delivers events until ctx ends, and then for a second those that wait, up to the first that the
// endpoint does not take. The others are dropped. It returns no error, and may be called once.
func (s *Sender) Run(ctx context.Context) error {
	posting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var ending sync.WaitGroup
	ending.Go(func() {
		<-ctx.Done()
		_ = run.Sleep(posting, graceTime)
		stop()
	})
	for {
		m, ok := s.next(ctx)
		if ok && s.now().Sub(m.since) > maxWait {
			s.dropOld(m)
			continue
		}
		if !ok || !s.deliver(ctx, posting, m) {
			break
		}
	}
	stop()
	ending.Wait()
	s.dropRest()
	closeIdle(s.transport)
	return nil
}

// next returns the next message. It returns false if ctx has ended and none waits.
func (s *Sender) next(ctx context.Context) (m message, ok bool) {
	select {
	case m = <-s.queue:
		return m, true
	case <-ctx.Done():
	}
	select {
	case m = <-s.queue:
		return m, true
	default:
		return m, false
	}
}

// deliver posts a message until the endpoint takes or refuses it, or the attempts are used up. A post
// lasts until posting ends, and a pause until ctx does: deliver returns false if that ends a pause.
func (s *Sender) deliver(ctx, posting context.Context, m message) (goOn bool) {
	for n := 1; n <= maxAttempts; n++ {
		a := s.post(posting, m)
		if posting.Err() == nil { // otherwise the end of Run is the reason
			s.last = a.err
		}
		if a.err == nil {
			s.count(&s.sent)
			return true
		}
		if !a.retry || n == maxAttempts {
			s.count(&s.failed)
			s.reportFailure(m, n, a.err)
		}
		if !a.retry {
			return true
		}
		// After the last attempt too: the next event would meet the same trouble.
		if !run.Sleep(ctx, max(pause(n), a.after)) {
			return false
		}
	}
	return true
}

// pause returns how long to wait after the n-th attempt. It is random, so that many proxies do not
// try again at once.
func pause(n int) time.Duration {
	d := min(firstPause<<(n-1), maxPause)
	return d/2 + rand.N(d)
}

// count counts the outcome of a queued event.
func (s *Sender) count(outcome *atomic.Int64) {
	outcome.Add(1)
	s.queued.Add(-1)
}

// reportFailure logs that an event was not delivered.
func (s *Sender) reportFailure(m message, attempts int, err error) {
	if s.failures.Allow() {
		s.log.Warn("failed to deliver an event to the webhook", "host", s.host, "id", m.id, "type", m.kind,
			"attempts", attempts, "error", err, "failed", s.failed.Load())
	}
}

// dropOld drops an event that has waited too long.
func (s *Sender) dropOld(m message) {
	s.count(&s.dropped)
	if s.drops.Allow() {
		s.log.Warn("dropping an event for the webhook", "type", m.kind, "error", errOld, "dropped", s.dropped.Load())
	}
}

// dropRest drops the events that are left, and makes Send drop others.
func (s *Sender) dropRest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if n := s.queued.Swap(0); n > 0 {
		s.dropped.Add(n)
		last := s.last
		if last == nil {
			last = errEnded
		}
		s.log.Warn("failed to deliver the last events to the webhook", "host", s.host, "events", n, "error", last)
	}
}
