package replay

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/internal/accesslog"
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
		checkRanks(t, w, counts)
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

// checkRanks checks the most requests of a bucket in a window, and of all others.
func checkRanks(t *rapid.T, w *windows, counts map[string]int64) {
	most, next := int64(0), int64(0)
	for key, n := range counts {
		most = max(most, n)
		if key[:1] != w.busiest {
			next = max(next, n)
		}
	}
	if w.most != most || w.next != next {
		t.Fatalf("%d of bucket %s and %d of others, want %d and %d: %v", w.most, w.busiest, w.next, most, next, counts)
	}
}

// TestOutlier: a bucket stands out with four times as many requests as any other.
func TestOutlier(t *testing.T) {
	for many, want := range map[int]bool{7: false, 8: true} {
		w := newWindows(time.Minute)
		begin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
		for i := range many {
			w.add("scraper", begin.Add(time.Duration(i)*time.Second))
		}
		for range 2 {
			w.add("other", begin.Add(time.Minute))
		}
		w.end()
		if next, ok := w.outlier(); ok != want || next != 2 {
			t.Errorf("%d requests beside 2: %d, %v", many, next, ok)
		}
	}
}

// TestSuggestComment: a path of the log that would end a comment of YAML does not.
func TestSuggestComment(t *testing.T) {
	tenant, err := accesslog.ParseTemplate(DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	op, err := accesslog.ParseTemplate(accesslog.DefaultOp)
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"\u2028", "\u2029", "\u0085"} {
		line := `{"time":"2026-03-01T10:00:00Z","remote_addr":"192.0.2.1","request":"GET /a` + end + `hacked: HTTP/1.1","status":200}` + "\n"
		file, err := Suggest(t.Context(), strings.NewReader(line), io.Discard, Options{Tenant: tenant, Op: op})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(file), "hacked") || strings.ContainsFunc(string(file), func(r rune) bool { return r > 0x7e }) {
			t.Errorf("%q: %s", end, file)
		}
	}
}
