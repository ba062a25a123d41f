package limiter

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/latency"
	"github.com/limitgate/limitgate/limit"
)

// tookBySource counts what an observer receives.
type tookBySource struct {
	Observer
	counts map[limit.Source]map[time.Duration]int64
}

func (o *tookBySource) Took(source limit.Source, d time.Duration, n int64) {
	if o.counts[source] == nil {
		o.counts[source] = map[time.Duration]int64{}
	}
	o.counts[source][d] += n
}

// TestTiming checks that runs which called the store have their own times, however many others there
// are, and that the others count for those that were not timed.
func TestTiming(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	o := &tookBySource{counts: map[limit.Source]map[time.Duration]int64{}}
	l := &Limiter{opts: Options{Observer: o, Now: func() time.Time { return now }}}
	var timed timing
	const runs = 1000
	for i := range runs {
		source, took := limit.SourceLease, time.Microsecond
		if i%10 == 9 {
			source, took = limit.SourceStore, time.Millisecond
		}
		begin := now
		now = now.Add(took)
		timed.waited = source == limit.SourceStore
		timed.counts()[source] += 2
		timed.report(l, begin, 0)
	}
	if got := o.counts[limit.SourceStore]; len(got) != 1 || got[time.Millisecond] != 2*runs/10 {
		t.Errorf("of the store: %v", got)
	}
	got := o.counts[limit.SourceLease]
	if len(got) != 1 || got[time.Microsecond] < 2*runs*9/10-int64(2*latency.Interval/time.Microsecond) || got[time.Microsecond] > 2*runs*9/10 {
		t.Errorf("of leases: %v", got)
	}
	timed.waited = true
	timed.counts()[limit.SourceStore]++
	timed.report(l, now, 7*time.Second)
	if o.counts[limit.SourceStore][7*time.Second] != 1 {
		t.Errorf("the time before the run does not count: %v", o.counts[limit.SourceStore])
	}
}
