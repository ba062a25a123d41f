package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/limitgate/limitgate/internal/load"
	"github.com/limitgate/limitgate/internal/servers"
)

// traffic is the load of a side.
type traffic struct {
	conns, pipeline int
	keys            func() load.Keys
	// rate is the requests a second of an open load; 0 means a closed load.
	rate float64
	// fill is the number of different keys that are requested before the first round;
	// they are the first ones.
	fill int
}

// verdicts is the required outcome of a load's requests.
type verdicts int

const (
	admitted verdicts = iota // every request
	denied                   // every request, once the bucket is empty
	either
)

// loadDriver makes rounds with the generator.
type loadDriver struct {
	generator *load.Generator
	parts     parts
	verdicts  verdicts
	rounds    int
	// store is the backend whose commands are counted, or nil.
	store *backend
	rate  float64
	secured
	// proxy is closed with the driver, and its log is added to errors; nil without a
	// proxy.
	proxy *servers.Limitgate
}

func (d *loadDriver) close() error {
	if d.generator != nil {
		d.generator.Close()
	}
	if d.proxy != nil {
		return d.proxy.Close()
	}
	return nil
}

func (d *loadDriver) round(ctx context.Context, length time.Duration) (*sample, error) {
	var before map[string]executions
	var err error
	if d.store != nil {
		if before, err = d.store.commands(ctx); err != nil {
			return nil, err
		}
	}
	runtime.GC() // the garbage of the last round must not be collected in this one
	m, err := startMeter(d.parts)
	if err != nil {
		return nil, err
	}
	outcome, err := d.generator.Run(ctx, load.Load{Duration: length, Rate: d.rate})
	if err != nil {
		return nil, d.explain(err)
	}
	s := sampleOf(outcome)
	if err := m.stop(s); err != nil {
		return nil, err
	}
	if d.store != nil {
		after, err := d.store.commands(ctx)
		if err != nil {
			return nil, err
		}
		s.commands = difference(after, before)
	}
	d.rounds++
	return s, d.check(outcome)
}

// check returns an error for unexpected replies of a round.
func (d *loadDriver) check(o *load.Outcome) error {
	switch {
	case o.Errors > 0:
		return d.explain(fmt.Errorf("check replies: %d errors, the first: %s", o.Errors, o.FirstError))
	case o.From("backstop") > 0:
		return d.explain(fmt.Errorf("check replies: %d of %d decisions were made without the store", o.From("backstop"), o.Replies))
	case d.verdicts == admitted && o.Denied > 0:
		return fmt.Errorf("check replies: %d of %d requests were denied", o.Denied, o.Replies)
	case d.verdicts == denied && o.Admitted > 0 && d.rounds > 1: // the warm-up empties the buckets
		return fmt.Errorf("check replies: %d of %d requests were admitted", o.Admitted, o.Replies)
	}
	return nil
}

// maxLog is the maximum of bytes of a server's log in an error.
const maxLog = 2000

// explain adds the server's log to an error.
func (d *loadDriver) explain(err error) error {
	if d.proxy == nil || errors.Is(err, context.Canceled) {
		return err
	}
	log := d.proxy.Log()
	return fmt.Errorf("%w; the end of limitgate's log:\n%s", err, log[max(0, len(log)-maxLog):])
}

func difference(after, before map[string]executions) map[string]executions {
	d := make(map[string]executions)
	for name, n := range after {
		if calls := n.calls - before[name].calls; calls > 0 {
			d[name] = executions{calls, n.micros - before[name].micros}
		}
	}
	return d
}

// connect opens the generator of the driver: one target for each of the addresses, with
// the connections divided as evenly as possible.
func (d *loadDriver) connect(ctx context.Context, t traffic, request *load.Request, shape load.Shape, targets []load.Target) error {
	options := d.options(load.Options{Targets: targets, Request: request, Shape: shape, Pipeline: t.pipeline})
	if t.fill > 0 {
		if err := fill(ctx, t.fill, options); err != nil {
			return d.explain(err)
		}
	}
	d.rate = t.rate
	var err error
	d.generator, err = load.Dial(options)
	return err
}

// fill requests each of n keys once.
func fill(ctx context.Context, n int, o load.Options) error {
	if len(o.Targets) != 1 {
		return errors.New("fill store: keys are not routed")
	}
	o.Targets = []load.Target{{Addr: o.Targets[0].Addr, Conns: 16, Keys: load.Each(n)}}
	o.Pipeline = 64
	g, err := load.Dial(o)
	if err != nil {
		return err
	}
	defer g.Close()
	outcome, err := g.Run(ctx, load.Load{Requests: int64(n)})
	if err != nil {
		return fmt.Errorf("fill store: %w", err)
	}
	if outcome.Admitted != int64(n) {
		return fmt.Errorf("fill store: %d of %d keys were admitted, %d errors (%s)", outcome.Admitted, n, outcome.Errors, outcome.FirstError)
	}
	return nil
}

// share returns the number of connections to server i.
func share(conns, servers, i int) int {
	return conns*(i+1)/servers - conns*i/servers
}
