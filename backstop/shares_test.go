package backstop_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// decide has a backstop decide a request at a given time.
func decide(b *backstop.Backstop, set *limit.Set, req limit.Request, now int64) []limit.Item {
	var buf limit.Buffer
	set.Resolve(&req, nil, now, &buf)
	b.Decide(limit.DecisionTime{Now: now}, &req, buf.Items, buf.Calls)
	return buf.Items
}

// peek does the same for Backstop.Peek.
func peek(b *backstop.Backstop, set *limit.Set, req limit.Request, now int64) []limit.Item {
	var buf limit.Buffer
	set.Resolve(&req, nil, now, &buf)
	b.Peek(limit.DecisionTime{Now: now}, &req, buf.Items, buf.Calls)
	return buf.Items
}

// TestShareOfEach checks that over any history of requests and of instance counts an
// instance admits no more than the n-th part earns, and never denies a request within it.
func TestShareOfEach(t *testing.T) {
	set := storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "100/s"})
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "instances")
		b := backstop.New(backstop.Options{Instances: func() int { return n }})
		now, admitted := at.Now, int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			now += rapid.Int64Range(0, 300_000).Draw(t, "pause")
			cost := rapid.Int64Range(1, 20).Draw(t, "cost")
			it := decide(b, set, limit.Request{Tenant: "t", Cost: cost}, now)[0]
			if it.Allowed {
				admitted += cost
			}
			earned := 100 * (now - at.Now) / int64(n) / 1_000_000
			burst := max(1, int64(100/n))
			if admitted > burst+earned {
				t.Fatalf("%d admitted after %d us, where a burst of %d and %d more are the share", admitted, now-at.Now, burst, earned)
			}
			if !it.Allowed && admitted+cost <= int64(100/n) {
				t.Fatalf("a cost of %d is denied with %d admitted of a share of %d", cost, admitted, 100/n)
			}
		}
	})
}

// TestCostsDoNotCutEachOther checks that a bucket saves up for a large cost while small
// ones are requested and the number of instances changes, and that it has no units before
// it earned them.
func TestCostsDoNotCutEachOther(t *testing.T) {
	set := storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "100/s"})
	n := 50
	b := backstop.New(backstop.Options{Instances: func() int { return n }}) // 2 units each
	if it := decide(b, set, limit.Request{Tenant: "t", Cost: 10}, at.Now)[0]; it.Allowed || it.Wait != 4000 {
		t.Fatalf("a first request of 10 units, where 2 are there: %+v", it.Verdict)
	}
	now := at.Now
	for range 6 { // 12 units come, 6 go
		n = 99 - n
		now += 1_000_000
		if it := decide(b, set, limit.Request{Tenant: "t", Cost: 1}, now)[0]; !it.Allowed {
			t.Fatalf("a unit is denied: %+v", it.Verdict)
		}
	}
	now += 2_000_000
	if it := decide(b, set, limit.Request{Tenant: "t", Cost: 10}, now)[0]; !it.Allowed {
		t.Errorf("a request of 10 units is denied, with 10 saved up: %+v", it.Verdict)
	}
}

// TestFewerInstances checks that an instance keeps its remaining units when other
// instances leave, and refills faster.
func TestFewerInstances(t *testing.T) {
	set := storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "100/s"})
	n := 10
	b := backstop.New(backstop.Options{Instances: func() int { return n }})
	decide(b, set, limit.Request{Tenant: "t", Cost: 10}, at.Now)
	n = 2
	if it := decide(b, set, limit.Request{Tenant: "t", Cost: 1}, at.Now)[0]; it.Allowed {
		t.Errorf("fewer instances create units: %+v", it.Verdict)
	}
	if it := decide(b, set, limit.Request{Tenant: "t", Cost: 50}, at.Now+1_000_000)[0]; !it.Allowed {
		t.Errorf("a second of a half of 100/s is denied: %+v", it.Verdict)
	}
}

// TestForgottenBuckets checks that an evicted bucket comes back with the units of a
// second, not full, and that a new bucket is full once the others have refilled.
func TestForgottenBuckets(t *testing.T) {
	set := storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "600/m"})
	const kept = 64 * 4
	b := backstop.New(backstop.Options{Buckets: kept})
	admitted := func(tenant string, now int64) (n int) {
		for range 700 {
			if it := decide(b, set, limit.Request{Tenant: tenant, Cost: 1}, now)[0]; it.Allowed {
				n++
			}
		}
		return n
	}
	if n := admitted("first", at.Now); n != 600 {
		t.Fatalf("%d of a new bucket of 600 admitted", n)
	}
	for i := range 20 * kept {
		decide(b, set, limit.Request{Tenant: fmt.Sprint(i), Cost: 300}, at.Now)
	}
	if n := admitted("first", at.Now); n > 10 {
		t.Errorf("%d admitted of a bucket that was forgotten, want at most the 10 of a second", n)
	}
	if n := admitted("first", at.Now+2e6); n < 20 || n > 30 {
		t.Errorf("%d admitted two seconds later, want what it earned", n)
	}
	// Buckets of another rate were not forgotten.
	other := storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "5/s"})
	if it := decide(b, other, limit.Request{Tenant: "new", Cost: 5}, at.Now)[0]; !it.Allowed {
		t.Errorf("a new bucket of a rate of which none was forgotten is not full: %+v", it.Verdict)
	}
	if n := admitted("later", at.Now+60e6); n != 600 {
		t.Errorf("%d of a new bucket of 600 admitted a minute later", n)
	}
}

// TestForgottenAmongOthers checks that a slow bucket keeps its debt while faster ones are
// evicted beside it.
func TestForgottenAmongOthers(t *testing.T) {
	set := storetest.Compile(t,
		storetest.Spec{ID: "fast", By: []string{"tenant"}, Rate: "100/s"},
		storetest.Spec{ID: "month", By: []string{"tenant"}, Rate: "1000/720h"},
	)
	const kept = 64 * 4
	b := backstop.New(backstop.Options{Buckets: kept})
	now, admitted := at.Now, 0
	for range 10 {
		for range 20 {
			if items := decide(b, set, limit.Request{Tenant: "victim", Cost: 50}, now); items[0].Allowed && items[1].Allowed {
				admitted += 50
			}
			now += 500_000
		}
		for i := range 20 * kept {
			decide(b, set, limit.Request{Tenant: fmt.Sprint(i), Cost: 1}, now)
			now += 2_000
		}
	}
	if admitted > 1100 {
		t.Errorf("%d units of 1000 in 30 days admitted in %d s", admitted, (now-at.Now)/1_000_000)
	}
}

// TestForgettingGainsNothing checks that a tenant whose bucket is evicted again and
// again, because of its requests to other buckets, gets no more than two buckets hold.
func TestForgettingGainsNothing(t *testing.T) {
	set := storetest.Compile(t,
		storetest.Spec{ID: "slow", By: []string{"tenant", "user"}, Rate: "1000/h"},
		storetest.Spec{ID: "look", By: []string{"tenant", "other"}, Rate: "1000/h"},
	)
	b := backstop.New(backstop.Options{Buckets: 64 * 20})
	now, admitted := at.Now, 0
	for cycle := range 50 {
		for range 1100 {
			dims := []limit.Dim{{Name: "user", Value: "mallory"}}
			if decide(b, set, limit.Request{Tenant: "t", Cost: 1, Dims: dims}, now)[0].Allowed {
				admitted++
			}
		}
		for i := range 40 {
			dims := []limit.Dim{{Name: "other", Value: fmt.Sprint(cycle, i)}}
			decide(b, set, limit.Request{Tenant: "t", Cost: 1, Dims: dims}, now)
		}
		now += 30_000
	}
	if admitted > 2010 {
		t.Errorf("%d units of 1000/h admitted in %d ms", admitted, (now-at.Now)/1000)
	}
}

// TestLongNames checks that the memory of names is bounded, not only their number.
func TestLongNames(t *testing.T) {
	set := storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant", "op"}, Rate: "10/h"})
	b := backstop.New(backstop.Options{Buckets: 64 * 100})
	for i := range 500 {
		decide(b, set, limit.Request{Tenant: "t", Op: fmt.Sprint(i, strings.Repeat("%", 1000)), Cost: 1}, at.Now)
	}
	n, err := b.Reset(t.Context(), "t", "")
	if most := int64(100 * 128 / 3000); err != nil || n > most || n == 0 {
		t.Errorf("%d buckets with names of 3,000 bytes are kept where 100 of 128 fit, want at most %d: %v", n, most, err)
	}
}

// TestClosed checks that a limit that fails closed denies, and takes no units from other
// limits of the same call.
func TestClosed(t *testing.T) {
	set := storetest.Compile(t,
		storetest.Spec{ID: "open", By: []string{"tenant"}, Rate: "10/h"},
		storetest.Spec{ID: "closed", By: []string{"tenant", "op"}, Rate: "10/h", OnError: "closed"},
	)
	b := backstop.New(backstop.Options{})
	for range 3 {
		for _, it := range decide(b, set, limit.Request{Tenant: "t", Op: "pay", Cost: 1}, at.Now) {
			want := limit.SourceBackstop
			if it.Limit.ID == "closed" {
				want = limit.SourcePolicy
			}
			if it.Source != want || it.Allowed != (want == limit.SourceBackstop) {
				t.Errorf("%s: %+v by %s", it.Limit.ID, it.Verdict, it.Source)
			}
		}
	}
	if it := decide(b, set, limit.Request{Tenant: "t", Cost: 10}, at.Now)[0]; !it.Allowed {
		t.Errorf("requests that were denied took units: %+v", it.Verdict)
	}
}

// TestForget checks that only the share of one key's bucket is deleted.
func TestForget(t *testing.T) {
	of, err := limit.NewInlineLimit(1, bucket.MaxPeriod, 10)
	if err != nil {
		t.Fatal(err)
	}
	b := backstop.New(backstop.Options{})
	set := storetest.Compile(t)
	ask := func(key string, cost int64) bool {
		return decide(b, set, limit.Request{Inline: of, Key: key, Cost: cost}, at.Now)[0].Allowed
	}
	ask("k", 10)
	ask("other", 10)
	b.Forget(limit.InlineName("k"))
	if !ask("k", 10) || ask("other", 1) {
		t.Error("the bucket is not forgotten, or another one is")
	}
}
