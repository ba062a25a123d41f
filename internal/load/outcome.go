package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are kept in nanoseconds, from a tenth of a microsecond to a minute.
const (
	shortest = int64(100 * time.Nanosecond)
	longest  = int64(time.Minute)
)

// Outcome is what became of a run.
type Outcome struct {
	Tally
	// Elapsed is the time from the first request to the last reply.
	Elapsed time.Duration
	// Latency holds the latency of each reply, in nanoseconds.
	Latency *hdrhistogram.Histogram
	// Slices are the parts of a run with Load.Slice.
	Slices []Slice
}

// Slice is what became of the requests that were due in one part of a run.
type Slice struct {
	Tally
	Latency *hdrhistogram.Histogram
}

// newSlice returns an empty slice. There are many: theirs have two digits.
func newSlice() Slice {
	return Slice{Latency: hdrhistogram.New(int64(time.Microsecond), longest, 2)}
}

func newOutcome(l *Load) *Outcome {
	o := &Outcome{Latency: hdrhistogram.New(shortest, longest, 3)}
	if l.Slice > 0 {
		o.Slices = make([]Slice, (l.Duration+l.Slice-1)/l.Slice)
		for i := range o.Slices {
			o.Slices[i] = newSlice()
		}
	}
	return o
}

// close completes the outcome of a run whose last reply came at an instant.
func (o *Outcome) close(last int64) {
	o.Elapsed = time.Duration(last)
	for i := range o.Slices {
		o.Add(&o.Slices[i].Tally)
	}
}

// Rate is how many replies came in a second.
func (o *Outcome) Rate() float64 {
	if o.Elapsed <= 0 {
		return 0
	}
	return float64(o.Replies) / o.Elapsed.Seconds()
}

// Merge puts the slices from first up to before last together.
func (o *Outcome) Merge(first, last int) Slice {
	sum := newSlice()
	for i := max(0, first); i < min(last, len(o.Slices)); i++ {
		sum.Add(&o.Slices[i].Tally)
		sum.Latency.Merge(o.Slices[i].Latency)
	}
	return sum
}
