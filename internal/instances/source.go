package instances

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/limitgate/limitgate/internal/run"
)

const (
	// heartbeatInterval is how often a proxy renews its entry: several times in the life
	// of an entry, so that one or two lost heartbeats remove no proxy.
	heartbeatInterval = time.Second
	// dnsInterval is how often a name is looked up: about as often as the answers of a
	// cluster's DNS change, which caches them for 5 s or longer.
	dnsInterval = 5 * time.Second
	// goodbyeTimeout bounds the removal of the entry: an entry that stays expires by
	// itself.
	goodbyeTimeout = time.Second
	// spread is the part of an interval, one in spread, by up to which polls come early
	// at random, so that proxies that started together do not stay in step.
	spread = 5
)

// Static returns a source with a fixed number.
func Static(n int) Source { return static(n) }

type static int

// Run implements Source.
func (n static) Run(ctx context.Context, report func(int, error)) {
	report(int(n), nil)
	<-ctx.Done()
}

// HeartbeatStore is the store's interface for heartbeats.
type HeartbeatStore interface {
	// Beat renews this proxy's entry, and returns how many proxies have one; with an
	// error it returns the last known number, or 0. One goroutine calls it.
	Beat(ctx context.Context) (int, error)
	// Leave removes this proxy's entry.
	Leave(ctx context.Context) error
}

// Heartbeat returns a source that counts the proxies with an entry in the store. It
// renews this proxy's entry every second until it ends.
func Heartbeat(h HeartbeatStore) Source { return heartbeat{h} }

type heartbeat struct{ HeartbeatStore }

// Run implements Source. It removes the entry at the end.
func (h heartbeat) Run(ctx context.Context, report func(int, error)) {
	poll(ctx, heartbeatInterval, h.Beat, report)
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTimeout)
	defer cancel()
	if err := h.Leave(leaving); err != nil {
		report(0, fmt.Errorf("remove instance: %w", err))
	}
}

// poll calls ask at once and then every interval, until ctx ends. It cancels a call that
// takes longer than the interval: the next one serves as well.
func poll(ctx context.Context, every time.Duration, ask func(context.Context) (int, error), report func(int, error)) {
	for {
		asking, cancel := context.WithTimeout(ctx, every)
		n, err := ask(asking)
		cancel()
		if ctx.Err() != nil {
			return
		}
		report(n, err)
		if !run.Sleep(ctx, every-rand.N(every/spread)) {
			return
		}
	}
}
