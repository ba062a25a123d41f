package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/limitgate/limitgate/internal/load"
	"github.com/limitgate/limitgate/internal/servers"
)

// The load of the case of the paused master. A connection sends a request every two
// milliseconds, so that several wait behind one that waits for the store.
const (
	pauseRate   = 6000
	pauseConns  = 4 // to the tenants of each master, and as many to all tenants
	pauseLength = 100 * time.Millisecond
	pauseEvery  = 500 * time.Millisecond
	// pauseDeadline is the default of --decision-timeout, and pauseSlack is the delay
	// that the machine may add to it.
	pauseDeadline = 5 * time.Millisecond
	pauseSlack    = 2 * time.Millisecond
)

func pauseCases() []Case {
	return []Case{{
		Name: "head-of-line", Title: "one of three masters paused, 100 ms at a time",
		About: "6,000 requests a second in an open loop on the cluster, and Limitgate with its defaults. Rounds with and without pauses take " +
			"turns. A pause stops one master (`SIGSTOP`) for 100 ms of every 500. Some connections check tenants of that master, some those of " +
			"the other masters, and some all. The latency of the other masters' tenants must not change. A connection to all tenants gets each reply " +
			"within `--decision-timeout`, 5 ms, and 2 ms more for the machine. The proxy reads the next check of a connection after the reply " +
			"to the one before, and its deadline begins then. Latency counts from the instant at which a request was due.",
		run: runPauses,
	}}
}

// The groups of connections, in the order of the targets.
const (
	ofPaused = iota
	ofOthers
	ofOthersToo
	ofAll
)

// pauseRound returns the length of a round, and the number of rounds of each kind.
func (l *lab) pauseRound() (length time.Duration, rounds int) {
	if l.settings.Quick {
		return time.Second, 1
	}
	return 2 * time.Second, l.settings.Rounds
}

func runPauses(ctx context.Context, l *lab) (_ *Result, err error) {
	store, err := l.clustered(ctx)
	if err != nil {
		return nil, err
	}
	proxy, err := l.start(oneLimit, store)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	var targets []load.Target
	keys := load.Uniform(tenants)
	for _, part := range append(keys.Route(tenantWord, store.owner, len(store.nodes)), keys) {
		targets = append(targets, load.Target{Addr: proxy.Addr, Conns: pauseConns, Keys: part})
	}
	generator, err := load.Dial(load.Options{Targets: targets, Request: gate{}.request(), Shape: load.Decision, Pipeline: 1})
	if err != nil {
		return nil, err
	}
	defer generator.Close()
	m, err := startMeter(parts{client: self(), proxy: []int{proxy.PID()}, store: store.pids()})
	if err != nil {
		return nil, err
	}
	calm, paused, err := pauseRounds(ctx, l, generator, store.nodes[0])
	if err != nil {
		return nil, err
	}
	s := new(sample)
	if err := m.stop(s); err != nil {
		return nil, err
	}
	r := pauseResult(calm, paused)
	r.Others = s.others
	return r, nil
}

// pauseRounds makes load with the node running and with it paused, in turn, after a
// warm-up.
func pauseRounds(ctx context.Context, l *lab, g *load.Generator, node *servers.Node) (calm, paused []*load.Outcome, err error) {
	length, rounds := l.pauseRound()
	for round := range 1 + rounds {
		l.say("round %d of %d", round, rounds)
		without, err := g.Run(ctx, load.Load{Duration: length, Rate: pauseRate, ByTarget: true})
		if err != nil {
			return nil, nil, err
		}
		with, err := pausing(ctx, g, node, length)
		if err != nil {
			return nil, nil, err
		}
		for _, o := range []*load.Outcome{without, with} {
			if o.Errors+o.Denied > 0 {
				return nil, nil, fmt.Errorf("check replies: %d errors (%s) and %d denials of %d", o.Errors, o.FirstError, o.Denied, o.Replies)
			}
		}
		if round > 0 {
			calm, paused = append(calm, without), append(paused, with)
		}
	}
	return calm, paused, nil
}

// pausing makes load while the node is paused again and again.
func pausing(ctx context.Context, g *load.Generator, node *servers.Node, length time.Duration) (*load.Outcome, error) {
	over := make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- pauseUntil(over, node) }()
	o, err := g.Run(ctx, load.Load{Duration: length, Rate: pauseRate, ByTarget: true})
	close(over)
	return o, errors.Join(err, <-ended)
}

// pauseUntil pauses the node for a part of every interval until over is closed, and then
// leaves it running.
func pauseUntil(over <-chan struct{}, node *servers.Node) error {
	ticker := time.NewTicker(pauseEvery)
	defer ticker.Stop()
	for {
		err := node.Stop()
		time.Sleep(pauseLength)
		if err = errors.Join(err, node.Cont()); err != nil {
			return err
		}
		select {
		case <-over:
			return nil
		case <-ticker.C:
		}
	}
}

// pauseResult makes the figures of the rounds.
func pauseResult(calm, paused []*load.Outcome) *Result {
	calmOthers, pausedOthers := p99s(calm, ofOthers, ofOthersToo), p99s(paused, ofOthers, ofOthersToo)
	ratios := make([]float64, len(calm))
	for i := range ratios {
		ratios[i] = pausedOthers[i] / calmOthers[i]
	}
	deadline := milliseconds((pauseDeadline + pauseSlack).Nanoseconds())
	return &Result{Figures: []Figure{
		Figure{Name: "other masters' tenants: p99, with pauses to without", Unit: Ratio, Value: spread(ratios), Goal: atMost(1.25)}.judge(),
		{Name: "other masters' tenants: p99 without pauses", Unit: Milliseconds, Value: spread(calmOthers)},
		{Name: "other masters' tenants: p99 with pauses", Unit: Milliseconds, Value: spread(pausedOthers)},
		{Name: "other masters' tenants: without the store, without pauses", Unit: Percent, Value: spread(backstops(calm, ofOthers, ofOthersToo))},
		{Name: "other masters' tenants: without the store, with pauses", Unit: Percent, Value: spread(backstops(paused, ofOthers, ofOthersToo))},
		{Name: "connections to all tenants: p99 without pauses", Unit: Milliseconds, Value: spread(p99s(calm, ofAll))},
		Figure{
			Name: "connections to all tenants: p99 with pauses", Unit: Milliseconds,
			Value: spread(p99s(paused, ofAll)), Goal: atMost(deadline),
		}.judge(),
		{Name: "connections to all tenants: without the store, with pauses", Unit: Percent, Value: spread(backstops(paused, ofAll))},
		{Name: "paused master's tenants: p99 with pauses", Unit: Milliseconds, Value: spread(p99s(paused, ofPaused))},
		{Name: "paused master's tenants: without the store, with pauses", Unit: Percent, Value: spread(backstops(paused, ofPaused))},
	}}
}

// p99s returns the p99 of some targets in each round, in milliseconds.
func p99s(rounds []*load.Outcome, targets ...int) []float64 {
	values := make([]float64, len(rounds))
	for i, o := range rounds {
		first := o.Targets[targets[0]].Latency
		sum := hdrhistogram.New(first.LowestTrackableValue(), first.HighestTrackableValue(), int(first.SignificantFigures()))
		for _, t := range targets {
			sum.Merge(o.Targets[t].Latency)
		}
		values[i] = milliseconds(sum.ValueAtQuantile(99))
	}
	return values
}

// backstops returns the share in percent of decisions of some targets that were made
// without the store, in each round.
func backstops(rounds []*load.Outcome, targets ...int) []float64 {
	values := make([]float64, len(rounds))
	for i, o := range rounds {
		var from, all int64
		for _, t := range targets {
			from += o.Targets[t].From("backstop")
			all += o.Targets[t].Replies
		}
		values[i] = 100 * float64(from) / float64(all)
	}
	return values
}
