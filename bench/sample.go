package bench

import (
	"os"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/limitgate/limitgate/internal/load"
)

// sample is one round of one side.
type sample struct {
	perSecond float64
	decisions int64
	sources   map[string]int64
	// Microseconds of CPU for each decision; absent if the side has no such part.
	client, proxy, store float64
	// Milliseconds; p999 is below zero if the client does not report it.
	p50, p99, p999 float64
	// others is the share of the machine in percent that other processes used.
	others  float64
	seconds float64
	// commands are those of the store, nil without a store.
	commands map[string]executions
}

// scripts are the executions of scripts in the store.
func (s *sample) scripts() executions {
	var sum executions
	for _, name := range []string{"evalsha", "eval", "fcall"} {
		sum.calls += s.commands[name].calls
		sum.micros += s.commands[name].micros
	}
	return sum
}

// scriptMicros is how long scripts ran for each decision, by the store's own account,
// which is of time and not of CPU.
func (s *sample) scriptMicros() float64 {
	if n := s.scripts(); n.calls > 0 && s.decisions > 0 {
		return float64(n.micros) / float64(s.decisions)
	}
	return absent
}

// batch is the mean number of decisions per script call.
func (s *sample) batch() float64 {
	if n := s.scripts(); n.calls > 0 {
		return float64(s.decisions) / float64(n.calls)
	}
	return absent
}

// absent is the value of fields that a sample lacks.
const absent = -1

// parts are the processes of a side.
type parts struct{ client, proxy, store []int }

// self is this process as the client.
func self() []int { return []int{os.Getpid()} }

// meter measures the CPU time of the parts of a side over an interval.
type meter struct {
	parts   parts
	started time.Time
	before  [3]time.Duration
	machine time.Duration
	// own is the CPU time of a client that has ended.
	own time.Duration
}

func (p *parts) read() (costs [3]time.Duration, err error) {
	for i, pids := range [][]int{p.client, p.proxy, p.store} {
		if costs[i], err = cpuTime(pids...); err != nil {
			return costs, err
		}
	}
	return costs, nil
}

func startMeter(p parts) (*meter, error) {
	m := &meter{parts: p, started: time.Now()}
	var err error
	if m.machine, err = machineTime(); err != nil {
		return nil, err
	}
	m.before, err = p.read()
	return m, err
}

// stop sets the costs since the start in a sample that has its decisions.
func (m *meter) stop(s *sample) error {
	after, err := m.parts.read()
	if err != nil {
		return err
	}
	machine, err := machineTime()
	if err != nil {
		return err
	}
	wall := time.Since(m.started)
	strangers := machine - m.machine
	costs := [3]float64{absent, absent, absent}
	for i, pids := range [][]int{m.parts.client, m.parts.proxy, m.parts.store} {
		cost := after[i] - m.before[i]
		if i == 0 {
			cost += m.own
		}
		strangers -= cost
		if (len(pids) > 0 || cost > 0) && s.decisions > 0 {
			costs[i] = float64(cost.Nanoseconds()) / 1e3 / float64(s.decisions)
		}
	}
	s.client, s.proxy, s.store = costs[0], costs[1], costs[2]
	s.others = max(0, 100*strangers.Seconds()/wall.Seconds()/float64(runtime.NumCPU()))
	return nil
}

// sampleOf returns a sample with the generator's outcome.
func sampleOf(o *load.Outcome) *sample {
	s := &sample{
		perSecond: o.Rate(),
		decisions: o.Replies,
		seconds:   o.Elapsed.Seconds(),
		p50:       milliseconds(o.Latency.ValueAtQuantile(50)),
		p99:       milliseconds(o.Latency.ValueAtQuantile(99)),
		p999:      milliseconds(o.Latency.ValueAtQuantile(99.9)),
	}
	if len(o.Sources) > 0 {
		s.sources = make(map[string]int64)
		for _, from := range o.Sources {
			s.sources[from.Source] = from.Count
		}
	}
	return s
}

// sampleOfLatencies returns a sample of callers that recorded the latency of each decision.
func sampleOfLatencies(latencies []*hdrhistogram.Histogram, seconds float64) *sample {
	sum := latencies[0]
	for _, h := range latencies[1:] {
		sum.Merge(h)
	}
	return &sample{
		perSecond: float64(sum.TotalCount()) / seconds, decisions: sum.TotalCount(), seconds: seconds,
		p50: milliseconds(sum.ValueAtQuantile(50)), p99: milliseconds(sum.ValueAtQuantile(99)), p999: milliseconds(sum.ValueAtQuantile(99.9)),
	}
}

func milliseconds(nanoseconds int64) float64 { return float64(nanoseconds) / 1e6 }

// cpu is the CPU time of all servers of the side.
func (s *sample) cpu() float64 { return max(0, s.proxy) + max(0, s.store) }

// total is the CPU time of the side with its client.
func (s *sample) total() float64 { return s.cpu() + max(0, s.client) }
