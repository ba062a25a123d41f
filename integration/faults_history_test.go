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

// historyLimits are the limits of the tenants whose histories are checked: limits of all
// algorithms, which one call decides together. The rates are so low that no units are
// refilled during a test, except those of the paced limit. The closed plan has no bucket
// with a key of its own: with one, such a call on a hash slot that moves is decided in
// parts.
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
	retryWithin  = 8 * time.Second       // the decision of a check with an ID is recorded for ten
	holdMillis   = "600000"              // how long reservations and slots are held: longer than any test
)

// phase is the phase of a run.
type phase int32

const (
	beforeFault phase = iota
	whileFault
	afterFault
)

// unansweredMost is how many calls of a tenant may lack a reply of the store by the end
// of each phase. Each of them can be executed at any later time, or never, so each makes
// the search for an order longer.
var unansweredMost = [...]int32{beforeFault: 3, whileFault: 8, afterFault: 10}

// callsMost is how many calls of a tenant are made by the end of each phase, so that the
// search for an order does not take longer for a longer fault.
var callsMost = [...]int32{beforeFault: 250, whileFault: 700, afterFault: 900}

// historian runs the clients of one tenant, one on each proxy, and records their calls.
type historian struct {
	tenant     string
	plan       linear.Plan
	phase      *atomic.Int32
	calls      atomic.Int32
	unanswered atomic.Int32
	callers    []*historyCaller
}

// historians are the historians of all tenants of a scene.
type historians struct {
	all   []*historian
	stop  chan struct{}
	wg    sync.WaitGroup
	phase atomic.Int32
}

// historyTenants returns tenants of the two plans: some on each shard, most on the first,
// which is the faulty one, and some in the hash slot that moves.
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

// historyTenantLimits returns the part of the limits file that lists them.
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

// enter starts another phase of the run.
func (hs *historians) enter(p phase) { hs.phase.Store(int32(p)) }

// end stops the clients.
func (hs *historians) end() {
	close(hs.stop)
	hs.wg.Wait()
}

// history returns the calls of a tenant's clients.
func (h *historian) history() *linear.History {
	all := &linear.History{Tenant: h.tenant, Plan: h.plan}
	for _, c := range h.callers {
		all.Operations = append(all.Operations, c.saw...)
	}
	return all
}

// bold reports whether one more call may remain without a reply.
func (h *historian) bold() bool { return h.unanswered.Load() < unansweredMost[h.phase.Load()] }

// historyCaller is a client of a tenant on one proxy.
type historyCaller struct {
	h      *historian
	n      int // its index among the tenant's clients
	redis  *redis.Client
	random *rand.Rand
	stop   chan struct{}
	ids    int
	saw    []linear.Operation
}

// run makes calls until it is stopped.
func (c *historyCaller) run() {
	acts := []func(){c.check, c.check, c.pipeline, c.reserve, c.reserve, c.peek}
	if c.h.plan.Has("slots") {
		acts = append(acts, c.acquire, c.acquire)
	}
	for c.wait() {
		acts[c.random.IntN(len(acts))]()
	}
}

// wait waits until the next call, and reports whether there is one.
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

// id returns a new ID.
func (c *historyCaller) id() string {
	c.ids++
	return fmt.Sprintf("%d-%d", c.n, c.ids)
}

func (c *historyCaller) op() string { return []string{"call", "paced", "other"}[c.random.IntN(3)] }

// check makes a check, every other time with an ID. It repeats some admitted ones.
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

// pipeline makes several checks at once.
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

// reserve reserves units, and settles them later.
func (c *historyCaller) reserve() {
	call := linear.Call{Kind: linear.Reserve, Op: c.op(), Units: 1 + c.random.Int64N(4), ID: c.id()}
	settlement := linear.Call{Kind: linear.Commit, Units: c.random.Int64N(call.Units + 3), ID: call.ID}
	if c.random.IntN(2) == 0 {
		settlement.Kind, settlement.Units = linear.Cancel, 0
	}
	c.hold(call, settlement)
}

// acquire takes a slot, and releases it later.
func (c *historyCaller) acquire() {
	id := c.id()
	c.hold(linear.Call{Kind: linear.Acquire, Op: "work", ID: id}, linear.Call{Kind: linear.Release, ID: id})
}

// hold makes a call, and then the one that settles it, until that has a reply.
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

// askUntilAnswered makes a call. It retries one with an ID until the store replies, for
// as long as the store keeps the record of a decision. Doubtful reports that the store
// did not reply every time.
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

// awaitStore peeks until the store replies and another call may remain without a reply.
// It returns false if the run ends first.
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

// ask makes a call and records it. Doubtful reports for a settlement that the proxy may
// itself hold the units or slot; then only the outcome "settled before" is known to be
// the store's.
func (c *historyCaller) ask(call linear.Call, doubtful bool) linear.Answer {
	return c.askAll([]linear.Call{call}, doubtful)[0]
}

// askAll makes calls in one pipeline, and records them as concurrent.
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

// words returns the arguments of a call's command.
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

// answerOf returns the decision or the outcome in a reply, if the store made it.
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
