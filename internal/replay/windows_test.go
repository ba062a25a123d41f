package replay

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestWindows checks limitFor against counting the denials of every limit.
func TestWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWindows(time.Minute)
		begin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
		requests := rapid.SliceOfN(rapid.IntRange(0, 7), 1, 200).Draw(t, "buckets")
		counts := map[string]int64{}
		for i, bucket := range requests {
			at := begin.Add(time.Duration(i) * 5 * time.Second)
			name := fmt.Sprint(bucket)
			w.add(name, at)
			counts[name+at.Truncate(time.Minute).String()]++
		}
		w.end()
		share := rapid.Float64Range(0, 0.5).Draw(t, "share")
		got, ok := w.limitFor(share)
		for limit := int64(1); ; limit++ {
			denied := int64(0)
			for _, n := range counts {
				denied += max(0, n-limit)
			}
			if denied <= int64(share*float64(len(requests))) {
				if !ok || got != limit {
					t.Fatalf("%d, %v, want %d for %v of %v", got, ok, limit, share, counts)
				}
				return
			}
		}
	})
}
