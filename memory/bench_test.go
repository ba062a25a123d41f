package memory_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/memory"
)

// bucketBytes fills a store with a million buckets and returns the heap bytes
// for each, its name included.
func bucketBytes(tb testing.TB) float64 {
	tb.Helper()
	const buckets = 1_000_000
	set := storetest.Compile(tb, storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1/366d"})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := memory.New(memory.Options{Buckets: 2 * buckets})
	var b limit.Buffer
	for i := range buckets {
		b.Reset()
		set.Resolve(&limit.Request{Tenant: fmt.Sprintf("tenant-%08d", i), Cost: 1}, nil, 0, &b)
		s.Take(limit.DecisionTime{}, b.Items, b.Calls)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if s.Len() != buckets {
		tb.Fatalf("%d buckets are kept, want %d", s.Len(), buckets)
	}
	runtime.KeepAlive(s)
	return float64(after.HeapAlloc-before.HeapAlloc) / buckets
}

// BenchmarkBucketBytes reports the bytes of a bucket, measured over a million of them.
// The time is that of filling the store and does not matter.
func BenchmarkBucketBytes(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(bucketBytes(b), "bytes/bucket")
	}
}
