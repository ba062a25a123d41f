package bench

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/limitgate/limitgate/internal/load"
)

// garbageSettings are the environments in which the proxy is measured.
var garbageSettings = [][]string{
	{"GOGC=50"},
	{"GOGC=100"},
	{"GOGC=200"},
	{"GOGC=400"},
	{"GOGC=400", "GOMEMLIMIT=128MiB"},
	{"GOGC=400", "GOMEMLIMIT=64MiB"},
}

// garbageCases run only when named: they help to choose the collector's settings.
func garbageCases() []Case {
	const about = "The cost of settings of Go's collector: the same proxy with one after the other, in turn. Memory is the peak of the " +
		"process (`VmHWM`); the pause is the longest of the collector's last 256."
	measure := func(name, title string, g gate) Case {
		return Case{Name: name, Title: title, About: about, Aside: true, run: func(ctx context.Context, l *lab) (*Result, error) {
			return measureGarbage(ctx, l, g)
		}}
	}
	million := traffic{conns: 50, pipeline: 16, fill: manyTenants, keys: func() load.Keys { return load.Zipf(manyTenants, zipfExponent) }}
	return []Case{
		measure("garbage-memory-p16", "GOGC, memory store, pipeline 16", gate{traffic: uniform(50, 16)}),
		measure("garbage-redis-p16", "GOGC, one Redis, pipeline 16", gate{kind: onRedis, traffic: uniform(50, 16)}),
		measure("garbage-memory-million", "GOGC, memory store, 1M tenants, Zipf(1.1)", gate{traffic: million}),
	}
}

// measureGarbage runs rounds of the proxy with each of the settings in turn.
func measureGarbage(ctx context.Context, l *lab, g gate) (_ *Result, err error) {
	store, err := l.backend(ctx, g.kind)
	if err != nil {
		return nil, err
	}
	var drivers []*loadDriver
	defer func() {
		for _, d := range drivers {
			err = errors.Join(err, d.close())
		}
	}()
	for _, environment := range garbageSettings {
		l.say("starting with %s", strings.Join(environment, " "))
		g.environment = environment
		d, err := g.open(ctx, l, store)
		if err != nil {
			return nil, err
		}
		drivers = append(drivers, d)
	}
	samples := make([][]*sample, len(drivers))
	for round := range 1 + l.settings.Rounds {
		l.say("round %d of %d", round, l.settings.Rounds)
		for k := range drivers {
			i := (k + round) % len(drivers) // each setting is first in some rounds
			s, err := drivers[i].round(ctx, time.Duration(l.settings.RoundSeconds*float64(time.Second)))
			if err != nil {
				return nil, err
			}
			if round > 0 {
				samples[i] = append(samples[i], s)
			}
		}
	}
	r := new(Result)
	for i, d := range drivers {
		name := strings.Join(garbageSettings[i], " ")
		r.Sides = append(r.Sides, summarize(name, samples[i]))
		figures, err := d.garbage(ctx, name)
		if err != nil {
			return nil, err
		}
		r.Figures = append(r.Figures, figures...)
		r.Others = max(r.Others, spreadOf(samples[i], func(s *sample) float64 { return s.others }).Median)
	}
	return r, nil
}

// garbage returns figures of the garbage collector since the proxy was started.
func (d *loadDriver) garbage(ctx context.Context, name string) ([]Figure, error) {
	peak, err := procMemory(d.proxy.PID(), "VmHWM")
	if err != nil {
		return nil, err
	}
	metrics, err := newAdmin(d.proxy, nil).metrics(ctx)
	if err != nil {
		return nil, err
	}
	count, found := metrics["go_gc_duration_seconds_count"]
	if !found {
		return nil, errors.New("read metrics: no go_gc_duration_seconds")
	}
	longest := metrics[`go_gc_duration_seconds{quantile="1"}`]
	return []Figure{
		{Name: name + ": resident memory at most", Unit: MiB, Value: once(float64(peak) / (1 << 20))},
		{Name: name + ": collections", Unit: Count, Value: once(count)},
		{Name: name + ": longest pause", Unit: Milliseconds, Value: once(longest * 1e3)},
	}, nil
}
