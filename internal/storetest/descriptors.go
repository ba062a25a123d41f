package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/limiter"
)

// descriptorCheck is a request of descriptors and what it should find: for each of them whether it
// admits, and what is left then.
type descriptorCheck struct {
	descriptors []limit.Descriptor
	allowed     bool
	items       string
}

// descriptors checks requests that name their buckets: all or nothing, with costs of their own.
func descriptors(t *testing.T, store limiter.Store) {
	l := newLimiter(t, store, Compile(t, Spec{ID: "n", By: []string{"tenant"}, Rate: "1/366d"}))
	of := func(count int64, mode limit.Mode) *limit.Limit {
		made, err := limit.NewDescriptorLimit(fmt.Sprint("d.", count), count, bucket.MaxPeriod, mode)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	five, three, shadow, ten := of(5, limit.ModeEnforce), of(3, limit.ModeEnforce), of(2, limit.ModeShadow), of(10, limit.ModeEnforce)
	on := func(l *limit.Limit, counter string, cost int64) limit.Descriptor {
		return limit.Descriptor{Limit: l, Counter: "storetest;" + counter, Cost: cost}
	}
	for i, c := range []descriptorCheck{
		{[]limit.Descriptor{on(five, "a", 1), on(three, "b", 2)}, true, "yes 4, yes 1"},
		{[]limit.Descriptor{on(five, "a", 1), on(three, "b", 2)}, false, "no 1"},
		{[]limit.Descriptor{on(five, "a", 1)}, true, "yes 3"}, // the denied request has taken nothing
		{[]limit.Descriptor{on(five, "a", 0), on(three, "b", 1)}, true, "yes 3, yes 0"},
		{[]limit.Descriptor{on(five, "a", 0), on(three, "b", 0)}, true, "yes 3, yes 0"},
		{[]limit.Descriptor{on(five, "a", 1), on(five, "a", 1)}, true, "yes 2, yes 1"}, // twice the same
		{[]limit.Descriptor{on(five, "a", 1), on(five, "a", 1)}, false, "no 0"},
		{[]limit.Descriptor{on(shadow, "s", 1), on(five, "a", 1)}, true, "yes 1, yes 0"},
		{[]limit.Descriptor{on(shadow, "s", 2), on(ten, "a", 1)}, true, "no 1, yes 4"}, // a new number keeps what is used
		{[]limit.Descriptor{on(ten, "a", 11)}, false, "no 4"},
		{[]limit.Descriptor{on(ten, "{a}%7B\x00\xff", 1)}, true, "yes 9"},
		{[]limit.Descriptor{on(ten, strings.Repeat("long", 1000), 1)}, true, "yes 9"},
	} {
		var b limiter.Batch
		b.Requests = append(b.Requests, limit.Request{Cost: 1, Descriptors: c.descriptors})
		l.Decide(&b)
		if got := describeItems(b.Items(0), c.allowed); got != c.items || b.Decisions[0].Allowed != c.allowed {
			t.Errorf("step %d: %s, %+v, want %s", i, got, b.Decisions[0], c.items)
		}
	}
	many := make([]limit.Descriptor, limit.MaxDescriptors)
	for i := range many {
		many[i] = on(five, fmt.Sprint("many ", i), 1)
	}
	if d := ask(l, limit.Request{Cost: 1, Descriptors: many}); !d.Allowed || d.Remaining != 4 || d.Source != limit.SourceStore {
		t.Errorf("many: %+v", d)
	}
}

// extendedDescriptors compares random requests of descriptors with limits of all algorithms with a model:
// costs of 0 beside others, buckets that a request names twice, modes that change, and refunds.
func extendedDescriptors(t *testing.T, store limiter.Store) {
	l := newLimiter(t, store, Compile(t, Spec{ID: "n", By: []string{"tenant"}, Rate: "1/366d"}))
	random := rand.New(rand.NewPCG(Seed(t), 11))
	compile := func(rate, burst, algorithm string) *limit.Limit {
		text := func(s string) limit.Text {
			if s == "" {
				return limit.Text{}
			}
			return limit.Text{Value: s, Line: 1}
		}
		made, problems := limit.CompileDescriptor(&limit.RuleSpec{Line: 1, ID: text("d"), Rate: text(rate), Burst: text(burst), Algorithm: text(algorithm)})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return made
	}
	limits := []*limit.Limit{ // none of them gets units back meanwhile
		compile("7/366d", "", ""), compile("1/366d", "9", "token_bucket"), compile("8/366d", "", "sliding_window"), compile("6/month", "", "fixed_window"),
	}
	used := map[string]int64{}
	for step := range 400 {
		req := limit.Request{Cost: 1}
		admits, next := true, maps.Clone(used)
		var want []string
		for range 1 + random.IntN(4) {
			n := random.IntN(len(limits))
			d := limit.Descriptor{Limit: limits[n], Counter: fmt.Sprint("extended;", step/40, ";", n, ";", random.IntN(3)), Cost: random.Int64N(4)}
			d.Slot = []string{"", "slot 1", "slot {2}"}[n%3] // by the limit, so that a counter has one slot
			if req.Descriptors = append(req.Descriptors, d); next[d.Counter]+d.Cost > d.Limit.Params.Capacity {
				admits = false
				continue
			}
			next[d.Counter] += d.Cost
			want = append(want, fmt.Sprint("yes ", d.Limit.Params.Capacity-next[d.Counter]))
		}
		var b limiter.Batch
		b.Requests = append(b.Requests, req)
		if l.Decide(&b); b.Decisions[0].Allowed != admits {
			t.Fatalf("step %d: %+v of %+v, used %v", step, b.Decisions[0], req.Descriptors, used)
		}
		if !admits {
			continue
		}
		if got := describeItems(b.Items(0), true); got != strings.Join(want, ", ") {
			t.Fatalf("step %d: %s, want %s of %+v", step, got, strings.Join(want, ", "), req.Descriptors)
		}
		if used = next; random.IntN(4) == 0 {
			l.TakeBack(&b, 0)
			for _, d := range req.Descriptors {
				used[d.Counter] -= d.Cost
			}
		}
	}
}

// describeItems writes verdicts. Of a denied request only those of the items that deny matter: others
// may have been asked or not, and have lost their units again.
func describeItems(items []limit.Item, allowed bool) string {
	var all []string
	for i := range items {
		switch {
		case items[i].Denies():
			all = append(all, fmt.Sprint("no ", items[i].Remaining))
		case allowed:
			all = append(all, fmt.Sprint("yes ", items[i].Remaining))
		}
	}
	return strings.Join(all, ", ")
}
