package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are recorded in nanoseconds, from a tenth of a microsecond to a minute.
const (
	shortest = int64(100 * time.Nanosecond)
	longest  = int64(time.Minute)
)

// Outcome is the result of a run.
type Outcome struct {
	Tally
	// Elapsed is the time from the first request to the last reply.
	Elapsed time.Duration
	// Latency holds the latency of each reply, in nanoseconds.
	Latency *hdrhistogram.Histogram
	// Slices are the parts of a run with Load.Slice.
	Slices []Slice
	// Targets are the outcomes of each target in a run with Load.ByTarget.
	Targets []Slice
}

// Slice is the outcome of the requests that were due in one part of a run, or of those to
// one target.
type Slice struct {
	Tally
	Latency *hdrhistogram.Histogram
}

// newSlice returns an empty slice. There are many: their histograms have two digits.
func newSlice() Slice {
	return Slice{Latency: hdrhistogram.New(int64(time.Microsecond), longest, 2)}
}

func newOutcome(l *Load, targets int) *Outcome {
	o := &Outcome{Latency: hdrhistogram.New(shortest, longest, 3)}
	switch {
	case l.Slice > 0:
		o.Slices = newSlices(int((l.Duration + l.Slice - 1) / l.Slice))
	case l.ByTarget:
		o.Targets = newSlices(targets)
	}
	return o
}

func newSlices(n int) []Slice {
	slices := make([]Slice, n)
	for i := range slices {
		slices[i] = newSlice()
	}
	return slices
}

// part returns the slice to which a request belongs, nil if there are none.
func (o *Outcome) part(target int, due int64, l *Load) *Slice {
	switch {
	case len(o.Slices) > 0:
		return &o.Slices[min(due/int64(l.Slice), int64(len(o.Slices)-1))]
	case len(o.Targets) > 0:
		return &o.Targets[target]
	default:
		return nil
	}
}

// close completes the outcome of a run whose last reply arrived at last.
func (o *Outcome) close(last int64) {
	o.Elapsed = time.Duration(last)
	for _, parts := range [][]Slice{o.Slices, o.Targets} {
		for i := range parts {
			o.Add(&parts[i].Tally)
		}
	}
}

// Rate returns the replies a second.
func (o *Outcome) Rate() float64 {
	if o.Elapsed <= 0 {
		return 0
	}
	return float64(o.Replies) / o.Elapsed.Seconds()
}

// Merge combines the slices from first up to, but not including, last.
func (o *Outcome) Merge(first, last int) Slice {
	sum := newSlice()
	for i := max(0, first); i < min(last, len(o.Slices)); i++ {
		sum.Add(&o.Slices[i].Tally)
		sum.Latency.Merge(o.Slices[i].Latency)
	}
	return sum
}
