package bench

import (
	"context"
	"fmt"

	"github.com/limitgate/limitgate/internal/load"
)

// The bucket of the test of exactness: it holds so many units and refills so slowly that
// no unit comes back during a run.
const exactUnits = 5000

var exactLimit = fmt.Sprintf(`version: 1
default_plan: bench
plans:
  bench:
    - {id: tenant, by: [tenant], rate: 1/d, burst: %d, on_error: open}
`, exactUnits)

func hotCases() []Case {
	const about = "All connections check one bucket of one Redis. Afterwards as many connections check a bucket of 5,000 units " +
		"100,000 times at once. That bucket does not refill, so exactly 5,000 checks must be granted."
	pair := func(name, title string, t traffic, figures ...want) Case {
		c := compare(name, title, about, gate{kind: onRedis, traffic: t}.side(), gcra(onRedis, t), figures...)
		measure := c.run
		c.run = func(ctx context.Context, l *lab) (*Result, error) {
			r, err := measure(ctx, l)
			if err != nil {
				return nil, err
			}
			granted, err := countGranted(ctx, l, t)
			if err != nil {
				return nil, err
			}
			r.Figures = append(r.Figures, granted)
			return r, nil
		}
		return c
	}
	return []Case{
		pair("hot-p16", "one hot bucket, pipeline 16", hot(50, 16),
			throughput(atLeast(5.5)), storeMicros(atMost(0.2)), serverCPU(nil)),
		pair("hot-p1-500", "one hot bucket, pipeline 1, 500 connections", hot(500, 1),
			throughput(atLeast(1.6)), storeMicros(nil), serverCPU(nil)),
	}
}

// countGranted sends more requests to one bucket than it holds units.
func countGranted(ctx context.Context, l *lab, t traffic) (Figure, error) {
	l.say("counting what is granted")
	store, err := l.single(ctx)
	if err != nil {
		return Figure{}, err
	}
	g := gate{kind: onRedis, limits: exactLimit, traffic: t}
	d, err := g.open(ctx, l, store)
	if err != nil {
		return Figure{}, err
	}
	defer func() { _ = d.close() }()
	outcome, err := d.generator.Run(ctx, load.Load{Requests: 20 * exactUnits})
	if err != nil {
		return Figure{}, d.explain(err)
	}
	d.verdicts = either
	if err := d.check(outcome); err != nil {
		return Figure{}, err
	}
	return Figure{
		Name: fmt.Sprintf("granted of %s units", grouped(exactUnits)), Unit: Count,
		Value: once(float64(outcome.Admitted)), Goal: exactly(exactUnits),
	}.judge(), nil
}
