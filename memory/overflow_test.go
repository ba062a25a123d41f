package memory

import (
	"fmt"
	"testing"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// TestOverflowBuckets checks which limits share an overflow bucket: those of one id, plan, tenant and
// algorithm, whatever their rate, and of those that requests carry the ones of one rate.
func TestOverflowBuckets(t *testing.T) {
	file := limit.Limit{ID: "a", Plan: "p", Params: bucket.Params{Capacity: 1}}
	inline := limit.Limit{ID: "a", Plan: "p", Ordinal: limit.InlineOrdinal, Params: bucket.Params{Capacity: 1}}
	rule := inline
	rule.Ordinal = limit.DescriptorOrdinal
	for name, row := range map[string]struct {
		one    limit.Limit
		change func(l *limit.Limit)
		same   bool
	}{
		"the same":                {file, func(*limit.Limit) {}, true},
		"another rate":            {file, func(l *limit.Limit) { l.Params.Capacity = 2 }, true},
		"another id":              {file, func(l *limit.Limit) { l.ID = "b" }, false},
		"another plan":            {file, func(l *limit.Limit) { l.Plan = "q" }, false},
		"of a tenant":             {file, func(l *limit.Limit) { l.Tenant = "acme" }, false},
		"another algorithm":       {file, func(l *limit.Limit) { l.Params.Algorithm = bucket.AlgorithmSlidingLog }, false},
		"inline":                  {file, func(l *limit.Limit) { l.Ordinal = limit.InlineOrdinal }, false},
		"inline, the same":        {inline, func(*limit.Limit) {}, true},
		"inline, another rate":    {inline, func(l *limit.Limit) { l.Params.Capacity = 2 }, false},
		"a rule, the same":        {rule, func(*limit.Limit) {}, true},
		"a rule, another rate":    {rule, func(l *limit.Limit) { l.Params.Capacity = 2 }, false},
		"a rule, another rule":    {rule, func(l *limit.Limit) { l.ID = "b" }, false},
		"a rule, another replica": {rule, func(l *limit.Limit) { l.Rate.Text = "1/s" }, true},
	} {
		var o overflow
		other := row.one
		row.change(&other)
		if got := o.bucket(&row.one) == o.bucket(&other); got != row.same {
			t.Errorf("%s: shared=%t, want %t", name, got, row.same)
		}
		if n := o.count.Load(); n != 2 {
			t.Errorf("%s: %d decisions are counted", name, n)
		}
	}
}

// TestOverflowBound checks that limits that requests carry, of which there may be any number, share a bucket
// for each id from a number of buckets on, and that those before keep theirs.
func TestOverflowBound(t *testing.T) {
	var o overflow
	of := func(ordinal int, id string, capacity int64) *bucket.State {
		return o.bucket(&limit.Limit{ID: id, Ordinal: ordinal, Params: bucket.Params{Capacity: capacity}})
	}
	for i := range int64(maxOwn) {
		of(limit.DescriptorOrdinal, "rule", i+1)
	}
	if n := len(o.buckets); n != maxOwn {
		t.Errorf("%d buckets, want %d", n, maxOwn)
	}
	shared := of(limit.DescriptorOrdinal, "rule", maxOwn+1)
	if of(limit.DescriptorOrdinal, "rule", maxOwn+2) != shared || of(limit.DescriptorOrdinal, "other", 1) == shared || of(limit.InlineOrdinal, limit.InlineID, 1) == shared {
		t.Error("rules share no bucket, or one with another rule")
	}
	if of(0, "of a file", 1) == of(1, "another", 1) {
		t.Error("limits of files share a bucket")
	}
	if n := len(o.buckets); n != maxOwn+5 {
		t.Errorf("%d buckets, want %d", n, maxOwn+5)
	}
}

// TestOverflowOfDescriptors checks that the counters of a rule that find no room admit together what the rule
// admits, beside those of another rule, and of the same rule with another number.
func TestOverflowOfDescriptors(t *testing.T) {
	m, now := New(Options{Buckets: 1}), int64(1_800_000_000e6)
	rule := func(id string, count int64) *limit.Limit {
		l, err := limit.NewDescriptorLimit(id, count, bucket.MaxPeriod, limit.ModeEnforce)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	admitted := func(l *limit.Limit, counters string, most int) (n int) {
		for i := range most {
			var b limit.Buffer
			new(limit.Set).Resolve(&limit.Request{Descriptors: []limit.Descriptor{{Limit: l, Counter: fmt.Sprint(counters, i), Cost: 1}}}, nil, now, &b)
			m.Take(limit.DecisionTime{Now: now}, b.Items, b.Calls)
			if b.Items[0].Allowed {
				n++
			}
		}
		return n
	}
	if n := admitted(rule("filler", 5), "one", 1); n != 1 || m.Overflows() != 0 {
		t.Fatalf("%d admitted with room, %d overflows", n, m.Overflows())
	}
	for _, row := range []struct {
		rule *limit.Limit
		want int
	}{{rule("a", 10), 10}, {rule("b", 3), 3}, {rule("a", 10), 0}, {rule("a", 4), 4}, {rule("filler", 5), 5}} {
		if n := admitted(row.rule, "new", 50); n != row.want {
			t.Errorf("%s with %d: %d of 50 counters are admitted, want %d", row.rule.ID, row.rule.Rate.Count, n, row.want)
		}
	}
	if n := m.Overflows(); n != 250 || m.Len() != 1 {
		t.Errorf("%d overflows, %d buckets", n, m.Len())
	}
}

// TestRoomLeft checks that a store that holds more than its bound has no room.
func TestRoomLeft(t *testing.T) {
	b := budget{bound: 10}
	for live, want := range map[int64]int{0: 10, 9: 1, 10: 0, 12: 0} {
		if b.live.Store(live); b.left() != want {
			t.Errorf("%d live buckets leave room for %d, want %d", live, b.left(), want)
		}
	}
}
