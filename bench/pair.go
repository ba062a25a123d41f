package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// driver makes the rounds of one side.
type driver interface {
	// round makes load for about this duration.
	round(ctx context.Context, d time.Duration) (*sample, error)
	close() error
}

// side is Limitgate or a yardstick.
type side struct {
	name string
	// open starts the servers of the side and makes it ready for rounds.
	open func(ctx context.Context, l *lab) (driver, error)
}

// pair is two sides to compare.
type pair struct {
	subject, yardstick side
	figures            []want
}

// want is a figure to compute for each round, from the samples of the two sides.
type want struct {
	name string
	unit Unit
	of   func(a, b *sample) float64
	goal *Goal
}

// The figures that most pairs have.

func throughput(goal *Goal) want {
	return want{"throughput", Ratio, func(a, b *sample) float64 { return a.perSecond / b.perSecond }, goal}
}

func serverCPU(goal *Goal) want {
	return want{"CPU of proxy and Redis", Ratio, func(a, b *sample) float64 { return a.cpu() / b.cpu() }, goal}
}

func proxyCPU(goal *Goal) want {
	return want{"CPU of proxy", Ratio, func(a, b *sample) float64 { return a.proxy / b.proxy }, goal}
}

func storeCPU(goal *Goal) want {
	return want{"CPU of Redis", Ratio, func(a, b *sample) float64 { return a.store / b.store }, goal}
}

func totalCPU(goal *Goal) want {
	return want{"CPU of client, proxy and Redis", Ratio, func(a, b *sample) float64 { return a.total() / b.total() }, goal}
}

func proxyMicros(goal *Goal) want {
	return want{"CPU of proxy per decision", Microseconds, func(a, _ *sample) float64 { return a.proxy }, goal}
}

func storeMicros(goal *Goal) want {
	return want{"CPU of Redis per decision", Microseconds, func(a, _ *sample) float64 { return a.store }, goal}
}

func p99Ratio(goal *Goal) want {
	return want{"p99", Ratio, func(a, b *sample) float64 { return a.p99 / b.p99 }, goal}
}

func addedP50(goal *Goal) want {
	return want{"added p50", Microseconds, func(a, b *sample) float64 { return 1e3 * (a.p50 - b.p50) }, goal}
}

func addedP99(goal *Goal) want {
	return want{"added p99", Microseconds, func(a, b *sample) float64 { return 1e3 * (a.p99 - b.p99) }, goal}
}

// measure runs the rounds of the two sides in turn.
func (p *pair) measure(ctx context.Context, l *lab) (*Result, error) {
	sides := []side{p.subject, p.yardstick}
	var drivers []driver
	var result *Result
	err := func() error {
		for _, s := range sides {
			d, err := s.open(ctx, l)
			if err != nil {
				return fmt.Errorf("open %s: %w", s.name, err)
			}
			drivers = append(drivers, d)
		}
		samples, err := rounds(ctx, l, drivers, []string{p.subject.name, p.yardstick.name})
		if err != nil {
			return err
		}
		result = p.result(samples[0], samples[1])
		if d, ok := drivers[0].(profiled); ok {
			return l.profileCase(ctx, d, result)
		}
		return nil
	}()
	for _, d := range drivers {
		err = errors.Join(err, d.close())
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// rounds measures the drivers of the sides with these names in turn, and returns the samples
// of each.
func rounds(ctx context.Context, l *lab, drivers []driver, names []string) ([][]*sample, error) {
	samples := make([][]*sample, len(drivers))
	length := time.Duration(l.settings.RoundSeconds * float64(time.Second))
	for round := range 1 + l.settings.Rounds {
		if round == 0 {
			l.say("warming up")
		} else {
			l.say("round %d of %d", round, l.settings.Rounds)
		}
		for i, d := range drivers {
			s, err := d.round(ctx, length)
			if err != nil {
				return nil, fmt.Errorf("measure %s: %w", names[i], err)
			}
			if round > 0 { // the first is the warm-up
				samples[i] = append(samples[i], s)
			}
		}
	}
	return samples, nil
}

// result makes the figures of the rounds.
func (p *pair) result(subject, yardstick []*sample) *Result {
	r := &Result{Sides: []SideResult{summarize(p.subject.name, subject), summarize(p.yardstick.name, yardstick)}}
	for _, w := range p.figures {
		values := make([]float64, len(subject))
		for i := range subject {
			values[i] = w.of(subject[i], yardstick[i])
		}
		r.Figures = append(r.Figures, Figure{Name: w.name, Unit: w.unit, Value: spread(values), Goal: w.goal}.judge())
	}
	r.Others = spreadOf(append(subject, yardstick...), func(s *sample) float64 { return s.others }).Median
	return r
}

// summarize combines the rounds of a side.
func summarize(name string, samples []*sample) SideResult {
	r := SideResult{
		Name:      name,
		PerSecond: spreadOf(samples, func(s *sample) float64 { return s.perSecond }),
		Client:    spreadOf(samples, func(s *sample) float64 { return s.client }),
		Proxy:     present(samples, func(s *sample) float64 { return s.proxy }),
		Store:     present(samples, func(s *sample) float64 { return s.store }),
		Script:    present(samples, (*sample).scriptMicros),
		Batch:     present(samples, (*sample).batch),
		P50:       spreadOf(samples, func(s *sample) float64 { return s.p50 }),
		P99:       spreadOf(samples, func(s *sample) float64 { return s.p99 }),
		P999:      present(samples, func(s *sample) float64 { return s.p999 }),
	}
	for _, s := range samples {
		r.Decisions += s.decisions
		for source, n := range s.sources {
			if r.Sources == nil {
				r.Sources = make(map[string]int64)
			}
			r.Sources[source] += n
		}
	}
	return r
}

func spreadOf(samples []*sample, of func(*sample) float64) Spread {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	return spread(values)
}

// present is spreadOf for values that samples may lack.
func present(samples []*sample, of func(*sample) float64) *Spread {
	s := spreadOf(samples, of)
	if s.Max <= absent {
		return nil
	}
	return &s
}
