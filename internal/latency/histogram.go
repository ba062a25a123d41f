// Package latency counts durations in histograms that many goroutines share: without a lock,
// without an allocation, and with several observations of one duration for the price of one.
// A scrape sees a histogram with fixed buckets, and a native histogram beside them.
package latency

import (
	"iter"
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Bounds are the upper bounds of the fixed buckets.
var Bounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond,
}

// The native buckets are those of schema 2: bucket i ends at 2^(i/4) seconds. The first one also
// has all shorter durations, and the last one all longer ones.
//
// The layout is that of https://prometheus.io/docs/specs/native_histograms/.
const (
	schema      = 2
	perOctave   = 1 << schema
	firstBucket = -20 * perOctave // a microsecond
	lastBucket  = 4 * perOctave   // 16 s
	numNative   = lastBucket - firstBucket + 1
)

// shortest is the end of the first bucket, rounded down.
const shortest = time.Second >> (-firstBucket / perOctave)

// steps are the upper bounds of the buckets of an octave, as fractions as math.Frexp returns them.
var steps = func() (s [perOctave]float64) {
	for i := range s {
		s[i] = math.Exp2(float64(i)/perOctave) / 2
	}
	return s
}()

// Histogram counts durations. The zero value is empty. It is safe for concurrent use.
type Histogram struct {
	fixed  [len(Bounds) + 1]atomic.Int64
	native [numNative]atomic.Int64
	sum    atomic.Int64 // nanoseconds
}

// Observe counts a duration n times. A negative duration counts as 0.
func (h *Histogram) Observe(d time.Duration, n int64) {
	d = max(d, 0)
	i := 0
	for i < len(Bounds) && d > Bounds[i] {
		i++
	}
	h.fixed[i].Add(n)
	h.native[nativeBucket(d)-firstBucket].Add(n)
	h.sum.Add(int64(d) * n)
}

// nativeBucket returns the index of the native bucket of a duration.
func nativeBucket(d time.Duration) int {
	if d <= shortest {
		return firstBucket
	}
	fraction, exponent := math.Frexp(d.Seconds())
	i := 0
	for i < perOctave && fraction > steps[i] {
		i++
	}
	return min((exponent-1)*perOctave+i, lastBucket)
}

// Quantile returns an upper bound of the duration that the share q, 0 to 1, of the observations
// of all histograms does not exceed, since an earlier snapshot: it is at most a fifth too high.
// It returns 0 if there are no observations. Since may be nil.
func Quantile(q float64, now, since *Snapshot) time.Duration {
	if since == nil {
		since = &Snapshot{}
	}
	var total int64
	for i := range now {
		total += now[i] - since[i]
	}
	if total <= 0 {
		return 0
	}
	rank := int64(math.Ceil(q * float64(total)))
	for i := range now {
		if rank -= now[i] - since[i]; rank <= 0 {
			return upperBound(i)
		}
	}
	return 0 // counts were added between two reads
}

// upperBound returns the upper bound of a native bucket by its place in a snapshot.
func upperBound(i int) time.Duration {
	return time.Duration(math.Exp2(float64(i+firstBucket)/perOctave) * float64(time.Second))
}

// Snapshot has the counts of the native buckets.
type Snapshot [numNative]int64

// Buckets returns the upper bounds of the buckets that are not empty, and their counts.
func (s *Snapshot) Buckets() iter.Seq2[time.Duration, int64] {
	return func(yield func(time.Duration, int64) bool) {
		for i, n := range s {
			if n != 0 && !yield(upperBound(i), n) {
				return
			}
		}
	}
}

// AddTo adds the counts to a snapshot.
func (h *Histogram) AddTo(s *Snapshot) {
	for i := range h.native {
		s[i] += h.native[i].Load()
	}
}

// Metric returns the present counts for a scrape.
func (h *Histogram) Metric(desc *prometheus.Desc, labels []*dto.LabelPair) prometheus.Metric {
	return &metric{h, desc, labels}
}

type metric struct {
	h      *Histogram
	desc   *prometheus.Desc
	labels []*dto.LabelPair
}

// Desc implements prometheus.Metric.
func (m *metric) Desc() *prometheus.Desc { return m.desc }

// Write implements prometheus.Metric. The number of observations is that of the fixed buckets, and
// the native ones have as many, but for those that are counted meanwhile.
func (m *metric) Write(out *dto.Metric) error {
	h := &dto.Histogram{Schema: new(int32(schema)), ZeroThreshold: new(0.0), ZeroCount: new(uint64(0))}
	total := uint64(0)
	for i := range m.h.fixed {
		total += uint64(m.h.fixed[i].Load())
		if i < len(Bounds) {
			h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: new(Bounds[i].Seconds()), CumulativeCount: new(total)})
		}
	}
	h.SampleCount, h.SampleSum = &total, new(time.Duration(m.h.sum.Load()).Seconds())
	m.writeNative(h, int64(total))
	out.Histogram, out.Label = h, m.labels
	return nil
}

// writeNative writes the native buckets that are not empty, each as the difference from the one
// before, at most total observations.
func (m *metric) writeNative(h *dto.Histogram, total int64) {
	before, next := int64(0), 0
	for i := range m.h.native {
		n := min(m.h.native[i].Load(), total)
		if n == 0 {
			continue
		}
		total -= n
		index := i + firstBucket
		if len(h.PositiveSpan) == 0 || index != next {
			offset := index - next
			h.PositiveSpan = append(h.PositiveSpan, &dto.BucketSpan{Offset: new(int32(offset)), Length: new(uint32(0))})
		}
		*h.PositiveSpan[len(h.PositiveSpan)-1].Length++
		h.PositiveDelta = append(h.PositiveDelta, n-before)
		before, next = n, index+1
	}
	if len(h.PositiveSpan) == 0 { // an empty native histogram needs a span to be one
		h.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32(0)), Length: new(uint32(0))}}
	}
}
