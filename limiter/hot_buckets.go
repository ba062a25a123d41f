package limiter

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"
	"time"

	"github.com/limitgate/limitgate/limit"
)

const (
	// topSample is the sampling rate: one in topSample decisions is counted.
	topSample = 64
	// topWindow is the length of a window. Top reports the window before, too.
	topWindow = 10 * time.Second
	// topBuckets bounds the buckets that are counted in a window, each by a name of less
	// than longName bytes.
	topBuckets = 256
)

// hotBuckets counts the buckets that get the most checks, and those that deny most, in
// the last seconds. It counts a sample of the decisions as in "Efficient computation of
// frequent and top-k elements in data streams" (Metwally, Agrawal, El Abbadi, 2005).
type hotBuckets struct {
	mu     sync.Mutex // guards the fields below
	began  time.Time  // of now
	now    topCounts
	before topCounts
	lasted time.Duration // of before
}

// topCounts counts the decisions of a window by bucket.
type topCounts struct{ hot, denied spaceSaving }

// spaceSaving counts the most frequent names. A new name replaces the rarest one and
// continues its count, so that a count is never too low.
type spaceSaving struct {
	names map[string]*named
	rare  rarest
}

type named struct {
	name, limit string
	count       int64
	at          int // in spaceSaving.rare
}

// Hot is a bucket that gets many checks, or denies many.
type Hot struct {
	Bucket string // its name
	Limit  string // the id of its limit
	Rate   float64
}

// count counts a decision of the sample.
func (t *hotBuckets) count(d *limit.Decision, items []limit.Item, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(now)
	for j := range items {
		if items[j].Enforced() {
			t.now.hot.add(&items[j])
		}
	}
	if !d.Allowed && d.Item >= 0 {
		t.now.denied.add(&items[d.Item])
	}
}

// turn begins a new window when the current one is over. The caller holds mu.
func (t *hotBuckets) turn(now time.Time) {
	lasted := now.Sub(t.began)
	if lasted < topWindow && lasted >= 0 {
		return
	}
	t.before, t.lasted = t.now, min(lasted, topWindow)
	if lasted >= 2*topWindow || lasted < 0 { // no decisions for long
		t.before, t.lasted = topCounts{}, 0
	}
	t.now, t.began = topCounts{}, now
}

func (s *spaceSaving) add(it *limit.Item) {
	if len(it.Name) == 0 || len(it.Name) >= longName {
		return
	}
	if known := s.names[string(it.Name)]; known != nil {
		known.count += topSample
		heap.Fix(&s.rare, known.at)
		return
	}
	if s.names == nil {
		s.names = map[string]*named{}
	}
	if len(s.rare) < topBuckets {
		next := &named{name: string(it.Name), limit: it.Limit.ID, count: topSample}
		s.names[next.name] = next
		heap.Push(&s.rare, next)
		return
	}
	next := s.rare[0]
	delete(s.names, next.name)
	next.name, next.limit, next.count = string(it.Name), it.Limit.ID, next.count+topSample
	s.names[next.name] = next
	heap.Fix(&s.rare, 0)
}

// rarest is a heap of names, the rarest first.
type rarest []*named

func (r rarest) Len() int           { return len(r) }
func (r rarest) Less(i, j int) bool { return r[i].count < r[j].count }
func (r rarest) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].at, r[j].at = i, j
}

// Push implements heap.Interface.
func (r *rarest) Push(x any) {
	next := x.(*named)
	next.at = len(*r)
	*r = append(*r, next)
}

// Pop implements heap.Interface; no name is ever popped.
func (r *rarest) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

// Top returns the n buckets that got the most checks in the last ten to twenty seconds,
// and those that denied most, with the rate in checks per second. The rates are estimates
// from one decision in 64. Top is safe for concurrent use.
func (l *Limiter) Top(n int) (hot, denied []Hot) {
	t, now := &l.hotBuckets, l.opts.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(now)
	seconds := max(time.Second, t.lasted+now.Sub(t.began)).Seconds()
	return mostOf(n, seconds, t.before.hot, t.now.hot), mostOf(n, seconds, t.before.denied, t.now.denied)
}

// mostOf returns the n buckets with the highest counts of both windows.
func mostOf(n int, seconds float64, windows ...spaceSaving) []Hot {
	sum := map[string]Hot{}
	for _, w := range windows {
		for name, known := range w.names {
			sum[name] = Hot{name, known.limit, sum[name].Rate + float64(known.count)/seconds}
		}
	}
	var all []Hot
	for _, h := range sum {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b Hot) int { return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Bucket, b.Bucket)) })
	return all[:min(n, len(all))]
}
