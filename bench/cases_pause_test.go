package bench

import (
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/limitgate/limitgate/internal/load"
)

// pauseOutcome is a round with the given latency of each group's replies, one in ten of
// them without the store.
func pauseOutcome(latencies ...time.Duration) *load.Outcome {
	o := new(load.Outcome)
	for _, latency := range latencies {
		s := load.Slice{Latency: hdrhistogram.New(int64(time.Microsecond), int64(time.Minute), 2)}
		_ = s.Latency.RecordValues(int64(latency), 100)
		s.Tally = load.Tally{Replies: 100, Sources: []load.SourceCount{{Source: "store", Count: 90}, {Source: "backstop", Count: 10}}}
		o.Targets = append(o.Targets, s)
	}
	return o
}

func TestPausesAreMeasuredByGroup(t *testing.T) {
	const ms = time.Millisecond
	calm := []*load.Outcome{pauseOutcome(ms, ms, ms, ms)}
	for _, test := range []struct {
		name           string
		paused         *load.Outcome
		others, within string
	}{
		{"the others are unaffected", pauseOutcome(100*ms, ms, ms, 6*ms), met, met},
		{"another master's tenants wait", pauseOutcome(100*ms, ms, 2*ms, 6*ms), missed, met},
		{"who shares a connection waits", pauseOutcome(100*ms, ms, ms, 9*ms), met, missed},
	} {
		r := pauseResult(calm, []*load.Outcome{test.paused})
		var verdicts []string
		for i := range r.Figures {
			if r.Figures[i].Goal != nil {
				verdicts = append(verdicts, r.Figures[i].Verdict)
			}
		}
		if len(verdicts) != 2 || verdicts[0] != test.others || verdicts[1] != test.within {
			t.Errorf("%s: verdicts are %v", test.name, verdicts)
		}
		if last := r.Figures[len(r.Figures)-1].Value.Median; last != 10 {
			t.Errorf("%s: %v %% without the store, want 10", test.name, last)
		}
	}
}
