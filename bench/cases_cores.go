package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// coresPrefix begins the names of the cases of event loops.
const coresPrefix = "cores-"

// coresCases are the cases of event loops: the same load on proxies with one event loop, two, four and so on.
// They run only when they are named, as by `make bench-cores`.
func coresCases() []Case {
	about := "A proxy has half as many event loops as processors by `GOMAXPROCS`, and each proxy here has another number. " +
		"The figures compare the throughput of each with that of one loop. With six cores or more client, proxy and Redis are pinned to " +
		"cores of their own; with fewer nothing is pinned, and the client and the other processes take their part."
	loops := func(name, title string, g gate) Case {
		return Case{Name: name, Title: title, About: about, Aside: true, run: func(ctx context.Context, l *lab) (*Result, error) { return g.scale(ctx, l) }}
	}
	return []Case{
		loops(coresPrefix+"memory", "throughput by event loops, memory, pipeline 16", gate{kind: inMemory, traffic: uniform(50, 16)}),
		loops(coresPrefix+"redis", "throughput by event loops, one Redis, pipeline 16", gate{kind: onRedis, traffic: uniform(50, 16)}),
	}
}

// scale measures the proxy with each number of event loops in turn.
func (g gate) scale(ctx context.Context, l *lab) (r *Result, err error) {
	usable, err := usableCores()
	if err != nil {
		return nil, err
	}
	cores := divideCores(usable)
	unpin, err := cores.pinClient()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unpin()) }()
	var drivers []driver
	defer func() {
		for _, d := range drivers {
			err = errors.Join(err, d.close())
		}
	}()
	var names []string
	r = new(Result)
	for n := 1; n <= max(2, len(cores.proxy)); n *= 2 {
		store, err := l.backend(ctx, g.kind)
		if err != nil {
			return nil, err
		}
		g.environment = []string{"GOMAXPROCS=" + strconv.Itoa(2*n)}
		d, err := g.open(ctx, l, store)
		if err != nil {
			return nil, fmt.Errorf("open proxy of %d loops: %w", n, err)
		}
		drivers = append(drivers, d)
		if err := cores.pinServers(d.parts); err != nil {
			return nil, err
		}
		names = append(names, fmt.Sprintf("limitgate, loops: %d", n))
	}
	samples, err := rounds(ctx, l, drivers, names)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		r.Sides = append(r.Sides, summarize(name, samples[i]))
		if i == 0 {
			continue
		}
		ratios := make([]float64, len(samples[i]))
		for j, s := range samples[i] {
			ratios[j] = s.perSecond / samples[0][j].perSecond
		}
		r.Figures = append(r.Figures, Figure{Name: "throughput to one loop, " + strings.TrimPrefix(name, "limitgate, "), Unit: Ratio, Value: spread(ratios)})
	}
	r.Figures = append(r.Figures, Figure{Name: "cores to which processes are pinned, from six on", Unit: Count, Value: once(float64(len(cores.store) + len(cores.client) + len(cores.proxy)))})
	return r, nil
}
