package replay

import (
	"maps"
	"slices"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// maxWindowBuckets bounds the buckets that are counted in one window. Where there are more, nothing
// is said of the limit.
const maxWindowBuckets = 1_000_000

// windows counts requests by bucket in consecutive windows, to say which limit for a window would
// have denied a part of them.
type windows struct {
	period  time.Duration
	of      *limit.Limit // whose windows may follow the calendar; nil for none
	begin   time.Time
	counts  map[string]int64 // of the present window
	sizes   map[int64]int64  // how many windows of buckets had so many requests
	total   int64
	most    int64     // the most requests of a bucket in a window
	busiest string    // the bucket that had these
	at      time.Time // the beginning of that window
	next    int64     // the most that any other bucket had in a window
	skipped bool      // there were too many buckets
	limit   int64     // the count of the limit's rate, 0 if there is none
	title   string
	points  []point
}

func newWindows(period time.Duration) *windows {
	return &windows{period: period, counts: map[string]int64{}, sizes: map[int64]int64{}}
}

// add counts a request of a bucket. Requests come in the order of time.
func (w *windows) add(bucket string, at time.Time) {
	if begin := w.beginOf(at); !begin.Equal(w.begin) {
		w.end()
		w.begin = begin
	}
	if _, found := w.counts[bucket]; !found && len(w.counts) == maxWindowBuckets {
		w.skipped = true
		return
	}
	w.counts[bucket]++
	w.total++
}

// beginOf returns the beginning of the window that holds a time: one of the calendar, or aligned to the epoch, as those of the limit. All
// tenants have the windows of one limit, though an override may have another timezone.
func (w *windows) beginOf(at time.Time) time.Time {
	now := at.UnixMicro()
	if w.of != nil {
		if b := w.of.Bounds(now); b != nil {
			return time.UnixMicro(b[1])
		}
	}
	period := w.period.Microseconds()
	return time.UnixMicro(now - ((now%period)+period)%period)
}

// end ends the present window.
func (w *windows) end() {
	most, busiest := int64(0), ""
	for bucket, n := range w.counts {
		w.sizes[n]++
		if n > most || n == most && bucket < busiest {
			most, busiest = n, bucket
		}
	}
	if most > 0 {
		w.addPoint(most)
		w.rank(busiest, most)
	}
	for bucket, n := range w.counts {
		w.rank(bucket, n)
	}
	clear(w.counts)
}

// rank notes the requests of a bucket in the present window, if they are the most of one or of all others. The busiest one of
// the window is ranked first.
func (w *windows) rank(bucket string, n int64) {
	switch {
	case n > w.most:
		if bucket != w.busiest {
			w.next = w.most
		}
		w.most, w.busiest, w.at = n, bucket, w.begin
	case bucket != w.busiest && n > w.next:
		w.next = n
	}
}

// standsOut is how many times as many requests as any other a bucket has to have in a window to stand out.
const standsOut = 4

// outlier returns the most requests that any other bucket had in a window, if one stands out.
func (w *windows) outlier() (next int64, ok bool) {
	return w.next, w.next > 0 && w.most >= standsOut*w.next
}

// limitFor returns the smallest number of requests for a bucket and window with which at most a
// share of all requests, 0 to 1, would have been denied. Ok is false if that is not known. The last
// window must have ended.
func (w *windows) limitFor(share float64) (limit int64, ok bool) {
	if w.total == 0 || w.skipped {
		return 0, false
	}
	allowed := int64(share * float64(w.total))
	sizes := slices.Sorted(maps.Keys(w.sizes))
	// Lowering the limit by one denies one request more of each larger window.
	limit = w.most
	denied, larger := int64(0), int64(0)
	for i := len(sizes) - 1; i >= 0; i-- {
		larger += w.sizes[sizes[i]]
		next := int64(0)
		if i > 0 {
			next = sizes[i-1]
		}
		steps := min(limit-next, (allowed-denied)/larger)
		limit -= steps
		denied += steps * larger
		if limit > next {
			break
		}
	}
	return max(1, limit), true
}
