package judge

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// way is the way in which a limiter is called.
type way struct {
	cache bool // with a deny cache
	batch int  // the maximum number of requests that are decided together
	begin bool // with Start and Finish
	fast  bool // on the fast path, where that is possible; only in batches of one
}

func (w way) String() string {
	s := fmt.Sprintf("batch %d", w.batch)
	if w.cache {
		s += ", deny cache"
	}
	if w.begin {
		s += ", begun"
	}
	if w.fast {
		s += ", fast"
	}
	return s
}

// plain is the way without tolerance.
var plain = way{batch: 1}

// defaultPatience is the maximum time of a store's answer, in real time, on a busy
// machine.
const defaultPatience = 20 * time.Second

var addrs = func() *limit.AddrHasher {
	h, err := limit.NewAddrHasher([]byte("a secret for tests only"), limit.Prefixes{})
	if err != nil {
		panic(err)
	}
	return h
}()

// limiterEngine calls a limiter in front of a store.
type limiterEngine struct {
	way way
	// open returns an empty store.
	open func() (limiter.Store, error)
	// set stops the store's clock at now.
	set func(now time.Time)
	// failed is called when the store has left a decision undecided.
	failed   func()
	patience time.Duration

	limiter   *limiter.Limiter
	now       int64
	batch     limiter.Batch
	path      limiter.FastPath
	undecided atomic.Bool
	kept      map[heldID]bool // by held id: whether the store has a record of it
	bytes     []byte          // of the requests, overwritten when they are answered
	done      chan uint64
	calls     int // calls of Start
}

// compile compiles a limits file.
func compile(file string) (*limit.Set, error) {
	set, _, err := config.ParseLimits("limits.yaml", []byte(file), limit.CompileOptions{})
	return set, err
}

func (e *limiterEngine) run(h *history) []answer {
	answers := make([]answer, len(h.steps))
	sets := make([]*limit.Set, len(h.files))
	for i, file := range h.files {
		var err error
		if sets[i], err = compile(file); err != nil {
			answers[0].err = err.Error()
			return answers[:1]
		}
	}
	if err := e.start(h, sets[0]); err != nil {
		answers[0].err = err.Error()
		return answers[:1]
	}
	for i := 0; i < len(h.steps); {
		n := 1
		for h.steps[i].kind.pipelined() && n < e.way.batch && i+n < len(h.steps) && h.steps[i+n].joined {
			n++
		}
		if h.steps[i].kind.pipelined() {
			e.decide(h.steps[i:i+n], answers[i:i+n])
		} else {
			e.do(&h.steps[i], &answers[i], sets)
		}
		i += n
		if e.undecided.Load() {
			e.failed()
			return answers[:i]
		}
	}
	return answers
}

func (e *limiterEngine) start(h *history, set *limit.Set) error {
	e.step(h.start)
	store, err := e.open()
	if err != nil {
		return err
	}
	e.undecided.Store(false)
	e.kept = map[heldID]bool{}
	opts := limiter.Options{
		Store: realTime{store, e.patience}, Backstop: absent{&e.undecided}, Addrs: addrs, Timeout: e.patience,
		Now: func() time.Time { return time.UnixMicro(e.now) },
	}
	if e.way.cache {
		opts.DenyCacheSize = 1000
	}
	if fast, ok := store.(limiter.FastStore); ok && e.way.fast {
		opts.Store = realTimeFast{realTime{store, e.patience}, fast}
	}
	e.limiter = limiter.New(opts, set)
	return nil
}

func (e *limiterEngine) step(now int64) {
	e.now = now
	e.set(time.UnixMicro(now))
}

// do runs an operation that is not pipelined.
func (e *limiterEngine) do(o *operation, a *answer, sets []*limit.Set) {
	switch o.kind {
	case advance:
		e.step(e.now + o.by)
	case reload:
		e.limiter.SetLimits(sets[o.file])
	case reset:
		if _, err := e.limiter.Reset(context.Background(), o.tenant, o.limitID); err != nil {
			a.err = err.Error()
		}
	case refund:
		req := e.request(o)
		if returned, _ := e.limiter.Credit(&e.batch, &req); returned {
			a.outcome = 1
		}
		e.overwrite()
	case peek:
		e.batch.Reset()
		e.batch.Requests = append(e.batch.Requests, e.request(o))
		e.limiter.Peek(&e.batch)
		e.read(a, 0)
		e.overwrite()
	default:
		what := o.settlement()
		kept, known := e.kept[heldID{what.Hold, o.tenant, o.id}]
		a.outcome = int(e.limiter.Settle(what, kept || !known))
	}
}

// heldID identifies a request for its settlement.
type heldID struct {
	hold       limit.Hold
	tenant, id string
}

func (o *operation) settlement() *limit.Settlement {
	s := &limit.Settlement{Hold: limit.HoldReservation, Tenant: o.tenant, ID: o.id, Units: o.units, For: time.Duration(o.ttl) * time.Millisecond}
	switch o.kind {
	case check, reserve:
	case commit:
		s.Change = limit.ChangeCommit
	case cancel:
		s.Change = limit.ChangeCancel
	case release:
		s.Hold, s.Change = limit.HoldSlot, limit.ChangeRelease
	default:
		s.Hold, s.Change = limit.HoldSlot, limit.ChangeRenew
	}
	return s
}

// decide decides a pipeline.
func (e *limiterEngine) decide(steps []operation, answers []answer) {
	e.batch.Reset()
	for i := range steps {
		e.batch.Requests = append(e.batch.Requests, e.request(&steps[i]))
	}
	if e.way.fast {
		if e.limiter.BeginFast(&e.path); e.path.Decide(&e.batch.Requests[0]) {
			answers[0].read(&e.path.Decision)
			e.overwrite()
			return
		}
	}
	if e.way.begin {
		e.beginAndEnd()
	} else {
		e.limiter.Decide(&e.batch)
	}
	for i := range steps {
		e.read(&answers[i], i)
		if r := &e.batch.Requests[i]; r.Hold != limit.HoldNone && answers[i].allowed {
			e.kept[heldID{r.Hold, steps[i].tenant, steps[i].id}] = e.batch.Held(i)
		}
	}
	e.overwrite()
}

// beginAndEnd decides the batch as connections that share an event loop do.
func (e *limiterEngine) beginAndEnd() {
	e.calls++
	if e.done == nil {
		e.done = make(chan uint64, 16)
	}
	if e.limiter.Start(&e.batch, time.Time{}, func(token uint64) { e.done <- token }, uint64(e.calls)) {
		return
	}
	e.limiter.Flush()
	late := time.NewTimer(e.patience)
	defer late.Stop()
	for waiting := true; waiting; {
		select {
		case token := <-e.done:
			waiting = token != uint64(e.calls)
		case <-late.C:
			waiting = false
		}
	}
	if !e.limiter.Finish(&e.batch) {
		e.limiter.FinishBlocking(&e.batch)
	}
}

// request makes a request from words that live no longer than those of a connection.
func (e *limiterEngine) request(o *operation) limit.Request {
	r := limit.Request{Tenant: e.alias(o.tenant), Op: e.alias(o.op), Cost: o.cost, ID: e.alias(o.id)}
	if o.ip != "" {
		addr, err := limit.ParseAddr(o.ip)
		if err != nil {
			panic(err)
		}
		r.Addr = addr
	}
	for _, d := range o.dims {
		r.Dims = append(r.Dims, limit.Dim{Name: e.alias(d.Name), Value: e.alias(d.Value)})
	}
	switch o.kind {
	case reserve:
		r.Hold, r.HoldFor = limit.HoldReservation, time.Duration(o.ttl)*time.Millisecond
	case acquire:
		r.Hold, r.HoldFor = limit.HoldSlot, time.Duration(o.ttl)*time.Millisecond
	}
	return r
}

// alias copies s to memory that overwrite overwrites.
func (e *limiterEngine) alias(s string) string {
	if s == "" {
		return ""
	}
	if cap(e.bytes)-len(e.bytes) < len(s) {
		e.bytes = make([]byte, 0, max(1<<16, len(s)))
	}
	begin := len(e.bytes)
	e.bytes = append(e.bytes, s...)
	return unsafe.String(&e.bytes[begin], len(s))
}

// overwrite overwrites all strings that alias has returned.
func (e *limiterEngine) overwrite() {
	e.batch.Reset()
	for i := range e.bytes {
		e.bytes[i] = '?'
	}
	e.bytes = e.bytes[:0]
}

// read reads a decision.
func (a *answer) read(d *limit.Decision) {
	*a = answer{
		decided: true, allowed: d.Allowed, limit: d.Limit, remaining: d.Remaining, retry: d.RetryAfter, full: d.ResetAfter,
		id: d.LimitID(), source: d.Source,
	}
}

// read reads the answer to request i of the batch.
func (e *limiterEngine) read(a *answer, i int) {
	a.read(&e.batch.Decisions[i])
	if e.way != plain {
		return
	}
	items := e.batch.Items(i)
	for j := range items {
		it := &items[j]
		if it.Name == nil {
			continue
		}
		b := seenBucket{string(it.Name), it.Limit.ID, it.Cost, it.Remaining, it.Wait, it.Reset, &it.Limit.Params, it.Limit.SpansTenants(), it.Enforced(), true}
		for k := range items {
			other := &items[k]
			if other.Enforced() && other.Denies() && other.Name != nil && bytes.Equal(other.Name[:other.TagLen], it.Name[:it.TagLen]) {
				b.held = false
			}
		}
		a.buckets = append(a.buckets, b)
	}
}

// realTime makes a store use the real clock for its deadlines. The requests' own clock is
// the history's.
type realTime struct {
	limiter.Store
	patience time.Duration
}

// realTimeFast is a realTime with a fast path, which has no deadline.
type realTimeFast struct {
	realTime
	fast limiter.FastStore
}

func (s realTimeFast) TakeFast(now int64, tenant string, items []limit.FastItem) bool {
	return s.fast.TakeFast(now, tenant, items)
}

func (s realTime) now(at limit.DecisionTime) limit.DecisionTime {
	at.Start, at.Timeout = time.Now(), s.patience
	return at
}

func (s realTime) Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	s.Store.Take(s.now(at), items, calls)
}

func (s realTime) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, done func(token uint64), token uint64) (end func() bool) {
	return s.Store.Start(s.now(at), items, calls, done, token)
}

func (s realTime) Peek(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	s.Store.Peek(s.now(at), items, calls)
}

func (s realTime) Refund(at limit.DecisionTime, items []limit.Item) { s.Store.Refund(s.now(at), items) }

func (s realTime) Settle(at limit.DecisionTime, what *limit.Settlement) (limit.Outcome, []string) {
	return s.Store.Settle(s.now(at), what)
}

// absent is the backstop in runs without failures: a decision that reaches it was left
// undecided.
type absent struct{ asked *atomic.Bool }

func (b absent) Decide(at limit.DecisionTime, _ *limit.Request, items []limit.Item, calls []limit.Call) {
	for _, c := range calls {
		b.Share(at, items[c.First:c.Last], true)
	}
}

func (b absent) Peek(at limit.DecisionTime, req *limit.Request, items []limit.Item, calls []limit.Call) {
	b.Decide(at, req, items, calls)
}

func (b absent) Share(_ limit.DecisionTime, items []limit.Item, _ bool) {
	b.asked.Store(true)
	for i := range items {
		items[i].Source = limit.SourceBackstop
	}
}

func (b absent) Reset(context.Context, string, string) (int64, error) { return 0, nil }

func (b absent) Forget(string) {}

func (b absent) Settle(limit.DecisionTime, *limit.Settlement) bool { return false }

func (b absent) Refund([]limit.Item) { b.asked.Store(true) }
