package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/linear"
	"github.com/limitgate/limitgate/limit"
)

// historyLimits are of the tenants whose histories are checked: limits of all algorithms
// that one call decides together. The rates are so low that nothing comes back during a
// test, but for that of the paced one. The closed plan has no bucket with a key of its own:
// with one, a slot that moves has such a call decided in parts.
const historyLimits = `
  history:
    - {id: total, by: [tenant], group: total, rate: 1000/366d, algorithm: fixed_window, on_error: open}
    - {id: slow, by: [tenant], group: slow, when: {op: call}, rate: 1/h, burst: 200, on_error: open}
    - {id: log, by: [tenant], group: log, when: {op: call}, rate: 150/366d, algorithm: sliding_log, on_error: open}
    - {id: other, by: [tenant], group: other, when: {op: other}, rate: 400/366d, algorithm: sliding_log, on_error: open}
    - {id: paced, by: [tenant], group: paced, when: {op: paced}, rate: 20/s, burst: 20, on_error: open}
    - {id: slots, by: [tenant], when: {op: work}, algorithm: concurrency, slots: 2, on_error: open}
  closedhistory:
    - {id: total, by: [tenant], group: total, rate: 1000/366d, algorithm: sliding_window, on_error: closed}
    - {id: slow, by: [tenant], group: slow, when: {op: call}, rate: 1/h, burst: 150, on_error: closed}
    - {id: paced, by: [tenant], group: paced, when: {op: paced}, rate: 20/s, burst: 20, on_error: closed}
`

const pacedEvery = time.Second / 20

// openHistory and closedHistory are the plans of historyLimits.
var (
	openHistory = linear.Plan{
		{ID: "total", Capacity: 1000},
		{ID: "slow", Capacity: 200, Ops: []string{"call"}},
		{ID: "log", Capacity: 150, Ops: []string{"call"}},
		{ID: "other", Capacity: 400, Ops: []string{"other"}},
		{ID: "paced", Rule: linear.Paced, Capacity: 20, Every: pacedEvery, Ops: []string{"paced"}},
		{ID: "slots", Rule: linear.Slots, Capacity: 2, Ops: []string{"work"}},
	}
	closedHistory = linear.Plan{
		{ID: "total", Capacity: 1000},
		{ID: "slow", Capacity: 150, Ops: []string{"call"}},
		{ID: "paced", Rule: linear.Paced, Capacity: 20, Every: pacedEvery, Ops: []string{"paced"}},
	}
)

const (
	historyPause = 60 * time.Millisecond // between two calls of a client
	retryWithin  = 8 * time.Second       // the answer of a check with an ID is kept for ten
	holdMillis   = "600000"              // how long what is held is: longer than any test
)

// phase is what a run is in.
type phase int32

const (
	beforeFault phase = iota
	whileFault
	afterFault
)

// unansweredMost is how many calls of a tenant may have no answer of the store, by the end
// of each phase. Each can be executed at any later time, or never, so the search for an
// order takes longer with each.
var unansweredMost = [...]int32{beforeFault: 3, whileFault: 8, afterFault: 10}

// callsMost is how many calls of a tenant are made by the end of each phase, so that the
// search for an order takes no longer where a fault does.
var callsMost = [...]int32{beforeFault: 250, whileFault: 700, afterFault: 900}

// historian has clients of one tenant ask, one on each proxy, and notes what they get.
type historian struct {
	tenant     string
	plan       linear.Plan
	phase      *atomic.Int32
	calls      atomic.Int32
	unanswered atomic.Int32
	callers    []*historyCaller
}

// historians are those of all tenants of a scene whose histories are checked.
type historians struct {
	all   []*historian
	stop  chan struct{}
	wg    sync.WaitGroup
	phase atomic.Int32
}

// historyTenants returns tenants of the two plans: some on each shard, most on the first,
// which is the one that breaks, and some in the slot that moves.
func historyTenants(owner func(slot uint16) int) (open, closed []string) {
	wanted := map[int]int{0: 5, 1: 2, 2: 2, shards: 3}
	for i := 0; len(wanted) > 0; i++ {
		tenant := fmt.Sprint("h", i)
		slot := limit.HashSlot([]byte(tenant))
		where := owner(slot)
		if slot == limit.HashSlot([]byte(movingTenant)) {
			where = shards
		}
		if wanted[where] == 0 {
			continue
		}
		if wanted[where]%3 == 1 {
			closed = append(closed, tenant)
		} else {
			open = append(open, tenant)
		}
		if wanted[where]--; wanted[where] == 0 {
			delete(wanted, where)
		}
	}
	return open, closed
}

// historyTenantLimits is the part of the limits file that lists them.
func historyTenantLimits(owner func(slot uint16) int) string {
	open, closed := historyTenants(owner)
	var b strings.Builder
	b.WriteString("tenants:\n")
	for _, tenant := range open {
		fmt.Fprintf(&b, "  %s: {plan: history}\n", tenant)
	}
	for _, tenant := range closed {
		fmt.Fprintf(&b, "  %s: {plan: closedhistory}\n", tenant)
	}
	return b.String()
}

// startHistories starts the clients.
func startHistories(s *scene) *historians {
	hs := &historians{stop: make(chan struct{})}
	open, closed := historyTenants(s.FirstOwner)
	for i, tenant := range slices.Concat(open, closed) {
		h := &historian{tenant: tenant, plan: openHistory, phase: &hs.phase}
		if i >= len(open) {
			h.plan = closedHistory
		}
		for n, p := range s.proxies {
			c := &historyCaller{h: h, n: n, redis: p.client(), stop: hs.stop, random: rand.New(rand.NewPCG(uint64(i), uint64(n)))}
			h.callers = append(h.callers, c)
			hs.wg.Go(c.run)
		}
		hs.all = append(hs.all, h)
	}
	return hs
}

// enter notes that the run is in another phase.
func (hs *historians) enter(p phase) { hs.phase.Store(int32(p)) }

// end stops the clients.
func (hs *historians) end() {
	close(hs.stop)
	hs.wg.Wait()
}

// history is what the clients of a tenant saw.
func (h *historian) history() *linear.History {
	all := &linear.History{Tenant: h.tenant, Plan: h.plan}
	for _, c := range h.callers {
		all.Operations = append(all.Operations, c.saw...)
	}
	return all
}

// bold reports whether one more call may be left without an answer.
func (h *historian) bold() bool { return h.unanswered.Load() < unansweredMost[h.phase.Load()] }

// historyCaller is a client of a tenant on one proxy.
type historyCaller struct {
	h      *historian
	n      int // which of the tenant's it is
	redis  *redis.Client
	random *rand.Rand
	stop   chan struct{}
	ids    int
	saw    []linear.Operation
}

// run asks until it is stopped.
func (c *historyCaller) run() {
	acts := []func(){c.check, c.check, c.pipeline, c.reserve, c.reserve, c.peek}
	if c.h.plan.Has("slots") {
		acts = append(acts, c.acquire, c.acquire)
	}
	for c.wait() {
		acts[c.random.IntN(len(acts))]()
	}
}

// wait waits for some time until the next call, and reports whether there is to be one.
func (c *historyCaller) wait() bool {
	for {
		select {
		case <-c.stop:
			return false
		case <-time.After(historyPause/2 + time.Duration(c.random.Int64N(int64(historyPause)))):
		}
		if c.h.calls.Load() < callsMost[c.h.phase.Load()] {
			return true
		}
	}
}

// id returns an id that is new.
func (c *historyCaller) id() string {
	c.ids++
	return fmt.Sprintf("%d-%d", c.n, c.ids)
}

func (c *historyCaller) op() string { return []string{"call", "paced", "other"}[c.random.IntN(3)] }

// check checks, half of the times with an ID. Some that were admitted are made again.
func (c *historyCaller) check() {
	call := linear.Call{Kind: linear.Check, Op: c.op(), Units: 1 + c.random.Int64N(3)}
	if c.random.IntN(2) == 0 {
		call.ID = c.id()
	}
	began := time.Now()
	a, _ := c.askUntilAnswered(call)
	if a.Allowed && call.ID != "" && c.random.IntN(3) == 0 && c.wait() && time.Since(began) < retryWithin {
		c.ask(call, false)
	}
}

func (c *historyCaller) peek() {
	c.ask(linear.Call{Kind: linear.Peek, Op: c.op(), Units: 1 + c.random.Int64N(3)}, false)
}

// pipeline checks several times at once.
func (c *historyCaller) pipeline() {
	if !c.h.bold() {
		return
	}
	calls := make([]linear.Call, 2+c.random.IntN(2))
	for i := range calls {
		calls[i] = linear.Call{Kind: linear.Check, Op: c.op(), Units: 1 + c.random.Int64N(3)}
	}
	for _, a := range c.askAll(calls, false) {
		if !a.Known {
			c.awaitStore()
			return
		}
	}
}

// reserve reserves, and later settles.
func (c *historyCaller) reserve() {
	call := linear.Call{Kind: linear.Reserve, Op: c.op(), Units: 1 + c.random.Int64N(4), ID: c.id()}
	settlement := linear.Call{Kind: linear.Commit, Units: c.random.Int64N(call.Units + 3), ID: call.ID}
	if c.random.IntN(2) == 0 {
		settlement.Kind, settlement.Units = linear.Cancel, 0
	}
	c.hold(call, settlement)
}

// acquire takes a slot, and gives it back later.
func (c *historyCaller) acquire() {
	id := c.id()
	c.hold(linear.Call{Kind: linear.Acquire, Op: "work", ID: id}, linear.Call{Kind: linear.Release, ID: id})
}

// hold makes a call, and the one that settles it, until that has an answer.
func (c *historyCaller) hold(call, settlement linear.Call) {
	a, doubtful := c.askUntilAnswered(call)
	if a.Known && (!a.Allowed || a.Unrecorded) {
		return
	}
	for n := c.random.IntN(3); n > 0 && c.wait(); n-- {
		c.peek()
	}
	for range 3 {
		if !c.wait() || c.ask(settlement, doubtful).Known || !c.awaitStore() {
			return
		}
	}
	if c.random.IntN(4) == 0 && c.wait() {
		c.ask(settlement, doubtful) // once more
	}
}

// askUntilAnswered makes a call. One with an ID it makes again until the store answers, as
// long as that keeps an answer. Doubtful says that the store did not answer every time.
func (c *historyCaller) askUntilAnswered(call linear.Call) (a linear.Answer, doubtful bool) {
	began := time.Now()
	for range 3 {
		if a = c.ask(call, false); a.Known {
			break
		}
		doubtful = true
		if !c.awaitStore() || call.ID == "" || time.Since(began) > retryWithin {
			break
		}
	}
	return a, doubtful
}

// awaitStore peeks until the store answers and another call may be left without an answer,
// and reports whether it is so before the end.
func (c *historyCaller) awaitStore() bool {
	if c.h.bold() && c.random.IntN(4) == 0 {
		return c.wait() // clients are not always that careful
	}
	for c.wait() {
		a := c.ask(linear.Call{Kind: linear.Peek, Op: "other", Units: 1}, false)
		if a.Known && c.h.bold() {
			return true
		}
	}
	return false
}

// ask makes a call and notes it. Doubtful says of a settlement that the proxy may hold
// what it settles by itself: then only that it was settled before is of the store.
func (c *historyCaller) ask(call linear.Call, doubtful bool) linear.Answer {
	return c.askAll([]linear.Call{call}, doubtful)[0]
}

// askAll makes calls in one pipeline, and notes them as made at the same time.
func (c *historyCaller) askAll(calls []linear.Call, doubtful bool) (answers []linear.Answer) {
	pipe := c.redis.Pipeline()
	var replies []*redis.Cmd
	for i := range calls {
		replies = append(replies, pipe.Do(context.Background(), c.words(&calls[i])...))
	}
	sent := time.Now().UnixMicro()
	_, _ = pipe.Exec(context.Background()) // each reply has its own error
	received := time.Now().UnixMicro()
	for i, call := range calls {
		a := answerOf(&call, replies[i], doubtful)
		c.h.calls.Add(1)
		if !a.Known && call.Kind != linear.Peek {
			c.h.unanswered.Add(1)
		}
		c.saw = append(c.saw, linear.Operation{Client: c.n, Call: call, Answer: a, Sent: sent, Received: received})
		answers = append(answers, a)
	}
	return answers
}

// words returns the command of a call.
func (c *historyCaller) words(call *linear.Call) []any {
	words := []any{"RL." + call.Kind.String()}
	switch call.Kind {
	case linear.Commit:
		return append(words, "ID", call.ID, "TENANT", c.h.tenant, call.Units)
	case linear.Cancel, linear.Release:
		return append(words, "ID", call.ID, "TENANT", c.h.tenant)
	}
	words = append(words, c.h.tenant, call.Op, "-")
	if call.Kind != linear.Acquire {
		words = append(words, call.Units)
	}
	if call.ID != "" {
		words = append(words, "ID", call.ID)
	}
	if call.Kind == linear.Reserve || call.Kind == linear.Acquire {
		words = append(words, "TTL", holdMillis)
	}
	return words
}

// answerOf returns the decision or the outcome in a reply, if it is the store's.
func answerOf(call *linear.Call, reply *redis.Cmd, doubtful bool) linear.Answer {
	if call.Kind >= linear.Commit {
		outcome, err := reply.Int64()
		if err != nil || outcome != 2 && (outcome != 1 || doubtful) {
			return linear.Answer{}
		}
		return linear.Answer{Known: true, Outcome: outcome}
	}
	f, err := reply.Slice()
	if err != nil || len(f) < 7 || f[6] != "store" {
		return linear.Answer{}
	}
	allowed, _ := f[0].(int64)
	left, _ := f[2].(int64)
	a := linear.Answer{Known: true, Allowed: allowed == 1, Limit: fmt.Sprint(f[5]), Left: left}
	if len(f) > 7 && a.Allowed {
		a.Unrecorded = strings.HasPrefix(fmt.Sprint(f[7]), "n;")
	}
	return a
}
