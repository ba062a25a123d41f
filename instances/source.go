package instances

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// heartbeatInterval is how often a proxy says that it is there: several times
	// in the life of an entry, so that a lost beat or two takes nobody out.
	heartbeatInterval = time.Second
	// dnsInterval is how often a name is looked up: about as often as the answers
	// of a cluster's DNS change, which keeps them for 5 s or longer.
	dnsInterval = 5 * time.Second
	// goodbyeTimeout bounds taking leave: an entry that stays ends by itself.
	goodbyeTimeout = time.Second
	// spread is by how much of an interval polls come early, by chance, so that
	// proxies which started together do not go on asking together.
	spread = 5
)

// Static returns the source of a number that is given.
func Static(n int) Source { return static(n) }

type static int

// Run implements Source.
func (n static) Run(ctx context.Context, tell func(int, error)) {
	tell(int(n), nil)
	<-ctx.Done()
}

// Heart is the store as a heartbeat needs it.
type Heart interface {
	// Beat says that this proxy is there, and returns how many are; with an error how
	// many there were as far as is known, or 0. One goroutine calls it.
	Beat(ctx context.Context) (int, error)
	// Leave says that it is not there any more.
	Leave(ctx context.Context) error
}

// Heartbeat returns the source of the number of proxies that say in the store that
// they are there, as this one does every second until it ends.
func Heartbeat(h Heart) Source { return heartbeat{h} }

type heartbeat struct{ Heart }

// Run implements Source. At the end it takes leave.
func (h heartbeat) Run(ctx context.Context, tell func(int, error)) {
	poll(ctx, heartbeatInterval, h.Beat, tell)
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTimeout)
	defer cancel()
	if err := h.Leave(leaving); err != nil {
		tell(0, fmt.Errorf("take leave: %w", err))
	}
}

// poll asks now and then again every interval, until ctx ends. An answer that takes
// longer than the interval is not waited for: the next one is as good.
func poll(ctx context.Context, every time.Duration, ask func(context.Context) (int, error), tell func(int, error)) {
	for {
		asking, cancel := context.WithTimeout(ctx, every)
		n, err := ask(asking)
		cancel()
		if ctx.Err() != nil {
			return
		}
		tell(n, err)
		if !pause(ctx, every-rand.N(every/spread)) {
			return
		}
	}
}

// pause waits, and reports whether that was not cut short by the end of ctx.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
