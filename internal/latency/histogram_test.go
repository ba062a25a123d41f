package latency

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// written returns what a scrape sees of a metric.
func written(t *testing.T, m prometheus.Metric) *dto.Histogram {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Histogram
}

// nativeCounts returns the counts of native buckets by their index.
func nativeCounts(h *dto.Histogram) map[int32]int64 {
	counts, index, count, next := map[int32]int64{}, int32(0), int64(0), 0
	for _, span := range h.PositiveSpan {
		index += span.GetOffset()
		for range span.GetLength() {
			count += h.PositiveDelta[next]
			counts[index] = count
			index++
			next++
		}
	}
	return counts
}

// TestHistogram compares the histogram with that of the client library of Prometheus.
func TestHistogram(t *testing.T) {
	bounds := make([]float64, len(Bounds))
	for i, b := range Bounds {
		bounds[i] = b.Seconds()
	}
	library := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "x", Buckets: bounds, NativeHistogramBucketFactor: 1.2, NativeHistogramZeroThreshold: prometheus.NativeHistogramZeroThresholdZero,
	})
	var ours Histogram
	random := rand.New(rand.NewPCG(1, 2))
	observe := func(d time.Duration) {
		ours.Observe(d, 1)
		library.Observe(d.Seconds())
	}
	for _, b := range Bounds { // a bound belongs to the bucket that it ends
		observe(b)
		observe(b + 1)
	}
	for range 10_000 {
		observe(time.Duration(math.Exp(random.Float64()*math.Log(10e9/2e3)) * 2e3)) // 2 us to 10 s
	}
	got, want := written(t, ours.Metric(nil, nil)), written(t, library)
	if got.GetSampleCount() != want.GetSampleCount() || math.Abs(got.GetSampleSum()-want.GetSampleSum()) > 1e-6*want.GetSampleSum() {
		t.Errorf("%d observations of %g s, want %d of %g", got.GetSampleCount(), got.GetSampleSum(), want.GetSampleCount(), want.GetSampleSum())
	}
	for i := range want.Bucket {
		if g, w := got.Bucket[i], want.Bucket[i]; g.GetUpperBound() != w.GetUpperBound() || g.GetCumulativeCount() != w.GetCumulativeCount() {
			t.Errorf("bucket %d: %v, want %v", i, g, w)
		}
	}
	if got.GetSchema() != want.GetSchema() {
		t.Fatalf("schema %d, want %d", got.GetSchema(), want.GetSchema())
	}
	gotNative, wantNative := nativeCounts(got), nativeCounts(want)
	for index, n := range wantNative {
		if n != 0 && gotNative[index] != n {
			t.Errorf("native bucket %d: %d, want %d", index, gotNative[index], n)
		}
	}
}

// TestQuantile checks the bound of the error, between two snapshots.
func TestQuantile(t *testing.T) {
	var h Histogram
	h.Observe(time.Hour, 1000) // before
	var before, now Snapshot
	h.AddTo(&before)
	if got := Quantile(0.5, &before, &before); got != 0 {
		t.Errorf("of nothing: %s", got)
	}
	random := rand.New(rand.NewPCG(3, 4))
	var all []time.Duration
	for range 5000 {
		d := time.Duration(2000 + random.ExpFloat64()*float64(time.Millisecond))
		all = append(all, d, d, d)
		h.Observe(d, 3)
	}
	slices.Sort(all)
	h.AddTo(&now)
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		exact := all[int(math.Ceil(q*float64(len(all))))-1]
		if got := Quantile(q, &now, &before); got < exact || float64(got) > 1.2*float64(exact) {
			t.Errorf("quantile %g: %s, want %s to a fifth more", q, got, exact)
		}
	}
}

// TestExtremes checks that any duration has a bucket.
func TestExtremes(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{math.MinInt64, -1, 0, 1, time.Microsecond, time.Microsecond + 1, time.Minute, 1 << 40} {
		h.Observe(d, 1)
	}
	if m := written(t, h.Metric(nil, nil)); m.GetSampleCount() != 8 {
		t.Errorf("%d observations", m.GetSampleCount())
	}
}

// TestTimer checks that each run is timed while there are few, and one in each interval while
// there are many.
func TestTimer(t *testing.T) {
	var timer Timer
	now, timed := time.Unix(1_800_000_000, 0), 0
	for range 1000 {
		if timer.Due(now) {
			timed++
		}
		now = now.Add(Interval / 10)
	}
	if timed != 100 {
		t.Errorf("timed %d of 1000 runs, want 100", timed)
	}
	for range 10 {
		now = now.Add(2 * Interval)
		if !timer.Due(now) {
			t.Error("did not time a lonely run")
		}
	}
	if !timer.Due(now.Add(-time.Hour)) {
		t.Error("stopped when the clock was set back")
	}
}

func BenchmarkObserve(b *testing.B) {
	var h Histogram
	for i := range b.N {
		h.Observe(time.Duration(i%5_000_000), 1)
	}
}
