package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// poisonLimits holds one limit for each way to store a bucket. Each has a plan of its own,
// and all is the plan with all of them. A limit by region is shared.
var poisonLimits = []struct{ id, fields string }{
	{"tokens", "by: [tenant], rate: 1000/h"},
	{"large_tokens", "by: [tenant], rate: 1099511627776/366d"},
	{"sliding", "by: [tenant], rate: 1000/h, algorithm: sliding_window"},
	{"fixed", "by: [tenant], rate: 1000/h, algorithm: fixed_window"},
	{"calendar", "by: [tenant], rate: 1000/month, algorithm: fixed_window"},
	{"own_tokens", "by: [tenant, op], rate: 1000/h"},
	{"own_large_tokens", "by: [tenant, op], rate: 1099511627776/366d"},
	{"own_sliding", "by: [tenant, op], rate: 1000/h, algorithm: sliding_window"},
	{"own_fixed", "by: [tenant, op], rate: 1000/h, algorithm: fixed_window"},
	{"own_calendar", "by: [tenant, op], rate: 1000/month, algorithm: fixed_window"},
	{"log", "by: [tenant], rate: 100/h, algorithm: sliding_log"},
	{"slots", "by: [tenant], slots: 50, algorithm: concurrency"},
	{"region", "by: [region], rate: 1000/h"},
	{"region_log", "by: [region], rate: 100/h, algorithm: sliding_log"},
}

// poisonFile returns the limits file of the test. Each limit has two tenants: one with this
// limit only, and one with all limits.
func poisonFile() string {
	var plans, all, tenants, shared strings.Builder
	for _, l := range poisonLimits {
		rule := fmt.Sprintf("{id: %s, group: %s, %s}\n", l.id, l.id, l.fields)
		if strings.HasPrefix(l.id, "region") {
			shared.WriteString("  - " + rule)
		} else {
			fmt.Fprintf(&plans, "  %s:\n    - %s", l.id, rule)
			all.WriteString("    - " + rule)
		}
		plan := l.id
		if strings.HasPrefix(l.id, "region") {
			plan = "all"
		}
		fmt.Fprintf(&tenants, "  %s:\n    plan: %s\n  all-%s:\n    plan: all\n", l.id, plan, l.id)
	}
	return "version: 1\ndefault_plan: all\nmax_levels: 64\nplans:\n" + plans.String() + "  all:\n" + all.String() +
		"tenants:\n" + tenants.String() + "shared:\n" + shared.String()
}

// poisonPatience is the deadline of the test's decisions. None of them may need half of it.
const poisonPatience = 4 * time.Second

// ward decides poisoned buckets beside healthy ones.
type ward struct {
	t       *testing.T
	store   *Store
	limiter *limiter.Limiter
	client  *redis.Client
	set     *limit.Set
	lines   lineCount
	n       int // requests with an ID
	batch   limiter.Batch
	seen    Shard // by the last call of healthy
	harmful map[string]bool
	now     string
}

// lineCount counts the lines of a log.
type lineCount struct{ n atomic.Int64 }

func (c *lineCount) Enabled(context.Context, slog.Level) bool { return true }

func (c *lineCount) Handle(context.Context, slog.Record) error {
	c.n.Add(1)
	return nil
}

func (c *lineCount) WithAttrs([]slog.Attr) slog.Handler { return c }

func (c *lineCount) WithGroup(string) slog.Handler { return c }

func newWard(t *testing.T) *ward {
	t.Helper()
	w := &ward{t: t, harmful: map[string]bool{}}
	node := redistest.Start(t)
	w.store = openWithOptions(t, Options{Log: slog.New(&w.lines)}, node.Addr)
	w.client = client(t, node.Addr)
	var err error
	if w.set, _, err = config.ParseLimits("limits.yaml", []byte(poisonFile()), limit.CompileOptions{}); err != nil {
		t.Fatal(err)
	}
	w.limiter = limiter.New(limiter.Options{
		Store: w.store, Backstop: backstop.New(backstop.Options{}), Addrs: testAddrs, Timeout: poisonPatience,
	}, w.set)
	return w
}

// victim returns a request of one of the tenants of a limit.
func victim(tenant string) limit.Request {
	return limit.Request{Tenant: tenant, Op: "op", Dims: []limit.Dim{{Name: "region", Value: "of " + tenant}}, Cost: 1}
}

// bystander returns a request that has no poisoned bucket.
func bystander(n int) limit.Request {
	return limit.Request{Tenant: fmt.Sprintf("bystander-%d", n), Op: "op", Dims: []limit.Dim{{Name: "region", Value: "safe"}}, Cost: 1}
}

// isBystander reports whether a request is one of bystander's.
func isBystander(r *limit.Request) bool { return strings.HasPrefix(r.Tenant, "bystander") }

// do runs f and fails if it takes long.
func (w *ward) do(what string, f func()) {
	w.t.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > poisonPatience/2 {
		w.errorf("%s took %s", what, took)
	}
}

// decide decides requests in one batch, and checks that the store decides those of
// bystanders.
func (w *ward) decide(begin bool, requests ...limit.Request) {
	w.t.Helper()
	w.batch.Reset()
	w.batch.Requests = append(w.batch.Requests, requests...)
	w.do("a batch", func() {
		if begin {
			w.begin()
		} else {
			w.limiter.Decide(&w.batch)
		}
	})
	for i := range w.batch.Decisions {
		d, r := &w.batch.Decisions[i], &w.batch.Requests[i]
		if d.Source == limit.SourceNone || d.Source == limit.SourceBackstop && isBystander(r) {
			w.errorf("%s is decided by %s", r.Tenant, d.Source)
		}
	}
}

func (w *ward) begin() {
	done := make(chan uint64, 1)
	if w.limiter.Start(&w.batch, time.Time{}, func(token uint64) { done <- token }, 1) {
		return
	}
	w.limiter.Flush()
	late := time.NewTimer(poisonPatience)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
	if !w.limiter.Finish(&w.batch) {
		w.limiter.FinishBlocking(&w.batch)
	}
}

// id gives a request a unique ID.
func (w *ward) id(r limit.Request, h limit.Hold) limit.Request {
	w.n++
	r.ID, r.Hold, r.HoldFor = fmt.Sprintf("id-%d", w.n), h, time.Minute
	return r
}

// exercise makes requests of all kinds for a tenant, between those of bystanders.
func (w *ward) exercise(tenant string) {
	w.t.Helper()
	v := victim(tenant)
	dear := v
	dear.Cost = 3
	held, slot := w.id(v, limit.HoldReservation), w.id(v, limit.HoldSlot)
	// The victim's calls are more than half of all calls.
	w.decide(w.n%2 == 0, bystander(0), v, bystander(1), v, v, dear, w.id(v, limit.HoldNone), bystander(2), held, slot, w.id(bystander(3), limit.HoldReservation), v, bystander(0))
	w.decide(w.n%3 == 0, v)
	w.do("a peek", func() {
		w.batch.Reset()
		w.batch.Requests = append(w.batch.Requests, bystander(4), v, bystander(5))
		w.limiter.Peek(&w.batch)
		for _, at := range []int{0, 2} {
			if s := w.batch.Decisions[at].Source; s != limit.SourceStore {
				w.errorf("a bystander's peek is decided by %s", s)
			}
		}
	})
	w.do("a refund", func() { w.limiter.Credit(&w.batch, &v) })
	for _, what := range []*limit.Settlement{
		{Hold: limit.HoldReservation, Change: limit.ChangeCommit, Tenant: tenant, ID: held.ID, Units: int64(w.n % 6)},
		{Hold: limit.HoldReservation, Change: limit.ChangeCancel, Tenant: tenant, ID: held.ID},
		{Hold: limit.HoldSlot, Change: limit.ChangeRenew, Tenant: tenant, ID: slot.ID},
		{Hold: limit.HoldSlot, Change: limit.ChangeRelease, Tenant: tenant, ID: slot.ID},
	} {
		w.do(what.Change.String(), func() { w.limiter.Settle(what, true) })
	}
}

// mostPoisoned is the number of harmful plants after which a test gives up.
const mostPoisoned = 10

// errorf reports that the current plant does harm.
func (w *ward) errorf(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("%s: "+format, append([]any{w.now}, args...)...)
	w.harmful[w.now] = true
}

// healthy checks that nothing since its last call counted against the shard.
func (w *ward) healthy() {
	w.t.Helper()
	for _, shard := range w.store.Shards() {
		if opened := shard.Transitions[breaker.Open] - w.seen.Transitions[breaker.Open]; shard.State != breaker.Closed || opened > 0 {
			w.errorf("the breaker is %s and was opened %d times", shard.State, opened)
		}
		for _, k := range []ErrorKind{KindTimeout, KindNetwork, KindOverload, KindBreaker} {
			if n := shard.Failures[k] - w.seen.Failures[k]; n > 0 {
				w.errorf("%d calls were left undecided for %s", n, k)
			}
		}
		w.seen = shard
	}
	if w.harmful[w.now] { // do not blame the next plant for this one
		redistest.Eventually(w.t, poisonPatience, "the store answers again", w.store.Answers)
	}
}

// bucketKey is the place of a bucket: a key of its own, or a field of a string.
type bucketKey struct{ key, field string }

// items returns the items of a request.
func (w *ward) items(req limit.Request) []limit.Item {
	var b limit.Buffer
	w.set.Resolve(&req, testAddrs, time.Now().UnixMicro(), &b)
	return b.Items
}

// bucketOf returns the place of a tenant's bucket of a limit. The store must have it.
func (w *ward) bucketOf(tenant, id string) bucketKey {
	w.t.Helper()
	for _, it := range w.items(w.id(victim(tenant), limit.HoldSlot)) {
		if it.Limit.ID == id {
			return bucketKey{string(it.Name[:it.KeyLen]), string(it.Name[it.KeyLen:])}
		}
	}
	w.t.Fatalf("tenant %s has no limit %s", tenant, id)
	return bucketKey{}
}

// empty deletes the buckets of tenants and of all bystanders.
func (w *ward) empty(tenants ...string) {
	w.t.Helper()
	var requests []limit.Request
	for _, tenant := range tenants {
		requests = append(requests, victim(tenant))
	}
	for n := range 6 {
		requests = append(requests, bystander(n))
	}
	var keys []string
	for _, r := range requests {
		for _, it := range w.items(w.id(r, limit.HoldSlot)) {
			keys = append(keys, string(it.Name[:it.KeyLen]))
		}
	}
	if err := w.client.Unlink(w.t.Context(), keys...).Err(); err != nil {
		w.t.Fatal(err)
	}
}
