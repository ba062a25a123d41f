package limiter_test

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// returning is a store in which a bucket's units come back only after Refund has
// returned.
type returning struct{ *counted }

func (r returning) Refund(limit.DecisionTime, []limit.Item) {}

// TestLateUnitsVoidRefusals checks that units that come back late drop the cached state
// of their bucket.
func TestLateUnitsVoidRefusals(t *testing.T) {
	now := start
	store := returning{newCounted()}
	l := clocked(t, store, &now, 100, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/h", Burst: "2"})
	req := limit.Request{Tenant: "t", Cost: 2}
	decide(l, req)
	if d := decide(l, req)[0]; d.Allowed {
		t.Fatalf("%+v", d)
	}
	var b limiter.Batch
	l.Credit(&b, &req) // still under way
	now = now.Add(10 * time.Millisecond)
	if d := decide(l, req)[0]; d.Allowed {
		t.Fatalf("%+v", d)
	}
	var given limit.Buffer
	set := l.Limits()
	set.Resolve(&req, nil, 0, &given)
	now = now.Add(10 * time.Millisecond)
	store.Store.Refund(limit.DecisionTime{Now: now.UnixMicro()}, given.Items)
	l.Returned([]string{string(given.Items[0].Name)})
	now = now.Add(time.Millisecond)
	if d := decide(l, req)[0]; !d.Allowed {
		t.Errorf("after its units came back: %+v", d)
	}
}

// TestLeasedUnitsBeforeRefusals checks that this proxy admits requests from a lease
// whatever the store denied, also from units that a denied request returned to the lease.
func TestLeasedUnitsBeforeRefusals(t *testing.T) {
	now := start
	store := &lender{Store: memory.New(memory.Options{})}
	l := leasing(t, store, &now, 1, limit.Lease{On: true, Size: 5, TTL: 5 * time.Second},
		storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "100/h"}, storetest.Spec{ID: "op", By: []string{"op"}, Rate: "1/h"})
	plain := limit.Request{Tenant: "t", Cost: 1}
	for range 2 { // the second check brings the lease, from which the third takes a unit
		decide(l, plain)
	}
	if d := decide(l, plain)[0]; d.Source != limit.SourceLease {
		t.Fatalf("%+v", d)
	}
	decide(l, limit.Request{Tenant: "u", Op: "op", Cost: 1})
	for cost := int64(64); cost > 0; cost /= 2 { // until the store has no units
		for allowed := true; allowed; {
			allowed = decide(l, limit.Request{Tenant: "t", Cost: 5 + cost})[0].Allowed
		}
	}
	for name, req := range map[string]limit.Request{"alone": plain, "denied elsewhere": {Tenant: "t", Op: "op", Cost: 1}} {
		d := decide(l, req)[0]
		if d.Allowed != (req.Op == "") || !d.Allowed && d.LimitID() != "op" {
			t.Errorf("%s: %+v bound by %s", name, d, d.LimitID())
		}
	}
	now = now.Add(time.Millisecond)
	if d := decide(l, plain)[0]; !d.Allowed || d.Source != limit.SourceLease {
		t.Errorf("behind them: %+v", d)
	}
}

func newCounted() *counted { return &counted{Store: memory.New(memory.Options{Buckets: 1000})} }
