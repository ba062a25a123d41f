package latency

import (
	"maps"
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
		n := 1 + random.Int64N(3)
		ours.Observe(d, n)
		for range n {
			library.Observe(d.Seconds())
		}
	}
	for _, b := range Bounds { // a bound belongs to the bucket that it ends
		observe(b)
		observe(b + 1)
	}
	for range 10_000 {
		observe(time.Duration(math.Exp(random.Float64()*math.Log(10e9/1e3)) * 1e3)) // 1 us to 10 s
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
	maps.DeleteFunc(wantNative, func(_ int32, n int64) bool { return n == 0 }) // the library fills small gaps
	if !maps.Equal(gotNative, wantNative) {
		t.Errorf("native buckets %v, want %v", gotNative, wantNative)
	}
}

// TestMetric checks the description and the labels of a metric, and that one without observations is a
// native histogram too.
func TestMetric(t *testing.T) {
	desc := prometheus.NewDesc("x", "X.", []string{"source"}, nil)
	labels := []*dto.LabelPair{{Name: new("source"), Value: new("store")}}
	m := new(Histogram).Metric(desc, labels)
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	if m.Desc() != desc || len(out.Label) != 1 || out.Label[0].GetValue() != "store" {
		t.Errorf("%v with %v", m.Desc(), out.Label)
	}
	h := out.Histogram
	if len(h.PositiveSpan) != 1 || h.PositiveSpan[0].GetLength() != 0 || len(h.PositiveDelta) != 0 || h.GetSampleCount() != 0 || len(h.Bucket) != len(Bounds) {
		t.Errorf("without observations %v", h)
	}
}

// TestSnapshot checks that a snapshot adds up histograms, with the buckets that are not empty.
func TestSnapshot(t *testing.T) {
	var a, b Histogram
	a.Observe(time.Second, 2)
	b.Observe(time.Second, 3)
	b.Observe(time.Millisecond, 5)
	var s Snapshot
	a.AddTo(&s)
	b.AddTo(&s)
	var counts []int64
	var bounds []time.Duration
	for bound, n := range s.Buckets() {
		bounds, counts = append(bounds, bound), append(counts, n)
	}
	if !slices.Equal(counts, []int64{5, 5}) || bounds[0] < time.Millisecond || bounds[0] > 1200*time.Microsecond || bounds[1] != time.Second {
		t.Errorf("%d observations up to %v", counts, bounds)
	}
	for range s.Buckets() {
		break // which must not go on
	}
}

// TestNativeBucket checks that each duration is within the bounds of its bucket, but for those beyond
// the first and the last one.
func TestNativeBucket(t *testing.T) {
	for i := range numNative {
		end := upperBound(i)
		for _, d := range []time.Duration{end - 1, end, end + 1} {
			got := nativeBucket(d) - firstBucket
			if got < 0 || got >= numNative {
				t.Fatalf("%s is in bucket %d", d, got)
			}
			if got < numNative-1 && upperBound(got) < d || got > 0 && upperBound(got-1) >= d {
				t.Errorf("%s is in bucket %d, which ends at %s", d, got, upperBound(got))
			}
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

// TestQuantileOfFew checks that the rank of a quantile is rounded up, and that a share of 0 is the shortest.
func TestQuantileOfFew(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{time.Millisecond, time.Second, 10 * time.Second} {
		h.Observe(d, 1)
	}
	var s Snapshot
	h.AddTo(&s)
	for q, exact := range map[float64]time.Duration{0: 0, 0.3: time.Millisecond, 0.34: time.Second, 0.5: time.Second, 0.67: 10 * time.Second, 1: 10 * time.Second} {
		if got := Quantile(q, &s, nil); got < exact || exact > 0 && float64(got) > 1.2*float64(exact) {
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
	sum := time.Duration(0 + 1 + 1000 + 1001 + 60e9 + 1<<40) // a negative one counts as 0
	if m := written(t, h.Metric(nil, nil)); m.GetSampleCount() != 8 || m.GetSampleSum() != sum.Seconds() {
		t.Errorf("%d observations of %g s, want %s", m.GetSampleCount(), m.GetSampleSum(), sum)
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
