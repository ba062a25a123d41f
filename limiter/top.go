package limiter

import (
	"cmp"
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/limit"
)

const (
	// topWindow is the length of a window. Top reports the window before, too.
	topWindow = 10 * time.Second
	// topEntries bounds the names that a sketch counts in a window, each of less than longName
	// bytes.
	topEntries = 256
	// topSamples bounds the decisions that a window counts before the sampling rate falls, so that
	// counting takes the same part of a processor however many there are.
	topSamples = 20_000
)

// topSketch counts the buckets that get the most checks, those that deny most, those that shadow
// limits would deny most, and the operations, in the last seconds. It counts a sample of the
// decisions as in "Efficient computation of frequent and top-k elements in data streams"
// (Metwally, Agrawal, El Abbadi, 2005).
type topSketch struct {
	// every is the sampling rate: one in so many decisions is counted, a power of two. It is 1
	// until there are many.
	every  atomic.Int64
	sample func(*limit.Request) // Options.Sample

	mu      sync.Mutex // guards the fields below
	samples int64      // decisions counted in the window
	began   time.Time  // of now
	now     topCounts
	before  topCounts
	lasted  time.Duration // of before
}

// topCounts counts the decisions of a window by bucket, and by operation.
type topCounts struct{ hot, denied, wouldDeny, ops spaceSaving }

// spaceSaving counts the most frequent names. A new name replaces the rarest one and
// continues its count, so that a count is never too low, and remembers how much of it that is.
type spaceSaving struct {
	names map[string]*named
	rare  rarest
}

type named struct {
	name, limit string
	count       int64
	inherited   int64 // the part of count that may be of other names
	denied      int64 // of an operation
	wouldDeny   int64
	at          int // in spaceSaving.rare
}

// Top has the buckets and operations with the most checks in the last ten to twenty seconds.
type Top struct {
	// Hot are the buckets that get the most checks, of shadow limits too, Denied those that deny most, and WouldDeny
	// those of shadow limits that would.
	Hot, Denied, WouldDeny []HotBucket
	Operations             []HotOperation
	// AtLeast reports that there are more buckets or operations than topEntries, so that the rates may be too low.
	AtLeast bool
}

// HotBucket is a bucket that gets many checks, or denies many.
type HotBucket struct {
	Bucket string  // its name
	Limit  string  // the id of its limit
	Rate   float64 // a second; at least, if there are more buckets than topEntries
}

// HotOperation is an operation with the rates of its checks, a second: all, the denied ones, and
// those that a shadow limit would deny.
type HotOperation struct {
	Operation               string
	Rate, Denied, WouldDeny float64
}

// draw returns a number below the sampling rate, and the rate: each decision of a batch whose
// place is that number modulo the rate is counted. At random, since periodic requests would
// otherwise be counted always, or never.
func (t *topSketch) draw() (sample, every int) {
	every = int(t.every.Load())
	return rand.IntN(every), every
}

// drawUncounted draws how many decisions are left out before one is counted, so that each is with
// the same probability, however many a FastPath decides. The mean is that of a geometric
// distribution, which is the whole part of an exponential one: -1/ln(1-1/every).
func (t *topSketch) drawUncounted() int {
	every := t.every.Load()
	if every == 1 {
		return 0
	}
	return int(rand.ExpFloat64() * -1 / math.Log1p(-1/float64(every)))
}

// count counts a decision of the sample.
func (t *topSketch) count(req *limit.Request, d *limit.Decision, items []limit.Item, now time.Time) {
	t.sample(req)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(now)
	every := t.every.Load()
	if t.samples++; t.samples%topSamples == 0 {
		t.every.Store(2 * every)
	}
	denied, wouldDeny := int64(0), int64(0)
	for j := range items {
		it := &items[j]
		t.now.hot.addBucket(it, every)
		if it.Denies() && !it.Enforced() {
			t.now.wouldDeny.addBucket(it, every)
			wouldDeny = every
		}
	}
	if !d.Allowed {
		denied = every
		if d.Item >= 0 && !d.Capped {
			t.now.denied.addBucket(&items[d.Item], every)
		}
	}
	if op := t.now.ops.add(req.Op, every); op != nil {
		op.denied += denied
		op.wouldDeny += wouldDeny
	}
}

// turn begins a new window when the current one is over. The caller holds mu.
func (t *topSketch) turn(now time.Time) {
	lasted := now.Sub(t.began)
	if lasted < topWindow && lasted > -topWindow { // a run may have begun before the window
		return
	}
	t.before, t.lasted = t.now, min(lasted, topWindow)
	if lasted >= 2*topWindow || lasted < 0 { // no decisions for long
		t.before, t.lasted = topCounts{}, 0
	}
	for t.every.Load() > 1 && t.samples < topSamples/4 { // there would have been twice as many
		t.every.Store(t.every.Load() / 2)
		t.samples *= 2
	}
	t.now, t.began, t.samples = topCounts{}, now, 0
}

// addBucket counts an item's bucket n times.
func (s *spaceSaving) addBucket(it *limit.Item, n int64) {
	if known := s.names[string(it.Name)]; known != nil { // without a copy of the name
		s.increase(known, n)
		return
	}
	if len(it.Name) < longName {
		if next := s.add(string(it.Name), n); next != nil {
			next.limit = it.Limit.ID
		}
	}
}

// add counts a name n times and returns its entry, or nil if the name is too long or empty.
func (s *spaceSaving) add(name string, n int64) *named {
	if name == "" || len(name) >= longName {
		return nil
	}
	if known := s.names[name]; known != nil {
		s.increase(known, n)
		return known
	}
	name = strings.Clone(name) // it may alias a command
	if s.names == nil {
		s.names = map[string]*named{}
	}
	if len(s.rare) < topEntries {
		next := &named{name: name, count: n}
		s.names[name] = next
		heap.Push(&s.rare, next)
		return next
	}
	next := s.rare[0]
	delete(s.names, next.name)
	*next = named{name: name, count: next.count + n, inherited: next.count, at: next.at}
	s.names[name] = next
	heap.Fix(&s.rare, 0)
	return next
}

func (s *spaceSaving) increase(known *named, n int64) {
	known.count += n
	heap.Fix(&s.rare, known.at)
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

// Top returns the n buckets and operations of each kind with the most checks. The rates are
// estimates, if there are more than some thousand decisions a second. Top is safe for concurrent
// use.
func (l *Limiter) Top(n int) (top Top) {
	hot, denied, wouldDeny, ops, seconds := l.top.copy(l.opts.Now())
	buckets := func(counts []named) (all []HotBucket) {
		for _, c := range mostOf(n, counts) {
			all = append(all, HotBucket{c.name, c.limit, float64(c.count) / seconds})
		}
		return all
	}
	for _, counts := range [][]named{hot, denied, wouldDeny, ops} {
		top.AtLeast = top.AtLeast || slices.ContainsFunc(counts, func(c named) bool { return c.inherited > 0 })
	}
	top.Hot, top.Denied, top.WouldDeny = buckets(hot), buckets(denied), buckets(wouldDeny)
	for _, c := range mostOf(n, ops) {
		top.Operations = append(top.Operations, HotOperation{c.name, float64(c.count) / seconds, float64(c.denied) / seconds, float64(c.wouldDeny) / seconds})
	}
	return top
}

// copy returns the counts of both windows, and their length in seconds. Decisions wait meanwhile, so
// that it does nothing else.
func (t *topSketch) copy(at time.Time) (hot, denied, wouldDeny, ops []named, seconds float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(at)
	for _, c := range []*topCounts{&t.before, &t.now} {
		hot, denied = c.hot.appendTo(hot), c.denied.appendTo(denied)
		wouldDeny, ops = c.wouldDeny.appendTo(wouldDeny), c.ops.appendTo(ops)
	}
	return hot, denied, wouldDeny, ops, max(time.Second, t.lasted+at.Sub(t.began)).Seconds()
}

func (s *spaceSaving) appendTo(all []named) []named {
	for _, c := range s.rare {
		all = append(all, *c)
	}
	return all
}

// mostOf returns the n names with the highest counts that are their own for sure. A name may be there
// twice.
func mostOf(n int, counts []named) (all []named) {
	sum := map[string]named{}
	for _, c := range counts {
		s := sum[c.name]
		sum[c.name] = named{name: c.name, limit: c.limit, count: s.count + c.count - c.inherited, denied: s.denied + c.denied, wouldDeny: s.wouldDeny + c.wouldDeny}
	}
	for _, c := range sum {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b named) int { return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.name, b.name)) })
	return all[:min(n, len(all))]
}
