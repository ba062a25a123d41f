package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/limitgate/limitgate/internal/load"
)

// fakeDriver returns given samples.
type fakeDriver struct {
	name    string
	log     *[]string
	samples []*sample
	err     error
}

func (d *fakeDriver) round(context.Context, time.Duration) (*sample, error) {
	*d.log = append(*d.log, d.name)
	if d.err != nil {
		return nil, d.err
	}
	s := d.samples[0]
	d.samples = d.samples[1:]
	return s, nil
}

func (d *fakeDriver) close() error {
	*d.log = append(*d.log, "close "+d.name)
	return nil
}

func fakeSide(d *fakeDriver) side {
	return side{name: d.name, open: func(context.Context, *lab) (driver, error) { return d, nil }}
}

func fakeLab(rounds int) *lab {
	return &lab{settings: Settings{Rounds: rounds, RoundSeconds: 1}, say: func(string, ...any) {}}
}

func rates(values ...float64) []*sample {
	var samples []*sample
	for _, v := range values {
		samples = append(samples, &sample{perSecond: v, decisions: 10, proxy: absent, store: 2, sources: map[string]int64{"store": 10}})
	}
	return samples
}

func TestPairIsMeasuredInTurnAfterAWarmUp(t *testing.T) {
	var log []string
	a := &fakeDriver{name: "a", log: &log, samples: rates(1, 20, 60, 40)}
	b := &fakeDriver{name: "b", log: &log, samples: rates(1000, 10, 20, 40)}
	p := &pair{subject: fakeSide(a), yardstick: fakeSide(b), figures: []want{throughput(atLeast(2)), storeCPU(nil)}}
	r, err := p.measure(t.Context(), fakeLab(3))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Fields("a b a b a b a b"); !slices.Equal(log[:8], want) {
		t.Errorf("order = %v", log)
	}
	// The ratios of the rounds, without the first, are 2, 3 and 1.
	if got := r.Figures[0]; got.Value != (Spread{2, 1, 3}) || got.Verdict != met {
		t.Errorf("throughput = %+v", got)
	}
	if got := r.Figures[1]; got.Value != once(1) || got.Verdict != "" {
		t.Errorf("CPU of Redis = %+v", got)
	}
	side := r.Sides[0]
	if side.PerSecond != (Spread{40, 20, 60}) || side.Decisions != 30 || side.Sources["store"] != 30 {
		t.Errorf("side = %+v", side)
	}
	if side.Proxy != nil || side.Store == nil || side.Store.Median != 2 {
		t.Errorf("parts of side = %v, %v", side.Proxy, side.Store)
	}
}

func TestFailedRoundEndsThePairAndItsDrivers(t *testing.T) {
	var log []string
	broken := errors.New("broken")
	a := &fakeDriver{name: "a", log: &log, samples: rates(1)}
	b := &fakeDriver{name: "b", log: &log, err: broken}
	_, err := (&pair{subject: fakeSide(a), yardstick: fakeSide(b)}).measure(t.Context(), fakeLab(3))
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "measure b") {
		t.Errorf("error = %v", err)
	}
	if want := []string{"a", "b", "close a", "close b"}; !slices.Equal(log, want) {
		t.Errorf("order = %v, want %v", log, want)
	}
}

func TestWrongAnswersFailTheRound(t *testing.T) {
	for name, test := range map[string]struct {
		tally    load.Tally
		verdicts verdicts
		rounds   int
		want     string
	}{
		"all well":          {load.Tally{Replies: 2, Admitted: 2}, admitted, 1, ""},
		"an error":          {load.Tally{Replies: 2, Admitted: 1, Errors: 1, FirstError: "ERR x"}, admitted, 1, "1 errors, the first: ERR x"},
		"a denial":          {load.Tally{Replies: 2, Admitted: 1, Denied: 1}, admitted, 1, "1 of 2 requests were denied"},
		"without the store": {load.Tally{Replies: 2, Admitted: 2, Sources: []load.SourceCount{{Source: "backstop", Count: 1}}}, admitted, 1, "1 of 2 decisions were made without"},
		"emptied at first":  {load.Tally{Replies: 2, Admitted: 1, Denied: 1}, denied, 1, ""},
		"empty later":       {load.Tally{Replies: 2, Admitted: 1, Denied: 1}, denied, 2, "1 of 2 requests were admitted"},
		"either":            {load.Tally{Replies: 2, Admitted: 1, Denied: 1}, either, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := &loadDriver{verdicts: test.verdicts, rounds: test.rounds}
			err := d.check(&load.Outcome{Tally: test.tally})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want %q", err, test.want)
			}
		})
	}
}

func TestConnectionsAreSharedEvenly(t *testing.T) {
	for _, test := range []struct{ conns, servers int }{{50, 3}, {500, 3}, {1, 3}, {51, 3}, {7, 1}} {
		sum, least, most := 0, test.conns, 0
		for i := range test.servers {
			n := share(test.conns, test.servers, i)
			sum, least, most = sum+n, min(least, n), max(most, n)
		}
		if sum != test.conns || most-least > 1 {
			t.Errorf("%+v: from %d to %d, %d in all", test, least, most, sum)
		}
	}
}

// failoverSlices returns slices of a failover, each with the given number of decisions
// made without the store.
func failoverSlices(without ...int64) *load.Outcome {
	o := new(load.Outcome)
	for _, n := range without {
		s := load.Slice{Latency: hdrhistogram.New(1000, int64(time.Minute), 2)}
		s.Replies = 1000
		s.Sources = []load.SourceCount{{Source: "backstop", Count: n}}
		_ = s.Latency.RecordValues(int64(time.Millisecond), 1000)
		o.Slices = append(o.Slices, s)
	}
	return o
}

func TestRecoveryIsWhenTheStoreDecidesForASecond(t *testing.T) {
	well := make([]int64, 2*recoveredSlices)
	for name, test := range map[string]struct {
		after []int64 // the kill
		want  int
	}{
		"at once":          {well, 1},
		"three slices":     {append([]int64{0, 300, 300}, well...), 3},
		"with a gap":       {append([]int64{300, 0, 0, 300}, well...), 4},
		"a few are normal": {append([]int64{300, 10, 10}, well...), 1},
		"a later one":      {append(append([]int64{300}, well...), 300), 1},
		"never":            {[]int64{300, 300, 300}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			o := failoverSlices(append([]int64{0, 0}, test.after...)...)
			if got := recovery(o, 2); got != 2+test.want {
				t.Errorf("recovered %d slices after the kill, want %d", got-2, test.want)
			}
		})
	}
}

func TestFailoverIsToldInItsPhases(t *testing.T) {
	o := failoverSlices(append([]int64{0, 0, 300, 400}, make([]int64, recoveredSlices)...)...)
	r := failoverResult(o, 2)
	got := make(map[string]float64)
	for _, f := range r.Figures {
		got[f.Name] = f.Value.Median
	}
	for name, want := range map[string]float64{
		"error replies": 0,
		"from the kill until the store decides all again": 200,
		"before: decisions":         2000,
		"before: without the store": 0,
		"during: decisions":         2000,
		"during: without the store": 700,
		"after: decisions":          float64(1000 * recoveredSlices),
		"after: without the store":  0,
	} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
}
