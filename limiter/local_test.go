package limiter_test

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// crowded is a store that counts its calls and can be saturated.
type crowded struct {
	counted
	saturated bool
}

func (s *crowded) Saturated(*limit.Item) bool { return s.saturated }

// TestLocalLimit checks that a limit that each instance decides by its share costs no
// call, is refunded if another limit denies, and can be peeked at without taking units.
func TestLocalLimit(t *testing.T) {
	store := &crowded{counted: counted{Store: memory.New(memory.Options{Buckets: 1000})}}
	l := placed(t, store, limit.PlacementLocal)
	req := limit.Request{Tenant: "t", Cost: 1}
	region := limit.Request{Tenant: "t", Cost: 1, Dims: []limit.Dim{{Name: "region", Value: "r"}}}

	if d := decide(l, region)[0]; !d.Allowed || store.calls != 1 {
		t.Errorf("%+v after %d calls, want one, for the region", d, store.calls)
	}
	if d := decide(l, region)[0]; d.Allowed || d.LimitID() != "region" {
		t.Errorf("the region admits one: %+v", d)
	}
	for i := range 5 { // half of ten, of which one is used
		var b limiter.Batch
		b.Requests = append(b.Requests, req)
		l.Peek(&b)
		peeked := b.Decisions[0].Allowed
		d := decide(l, req)[0]
		if d.Allowed != (i < 4) || peeked != d.Allowed || d.Source != limit.SourceLease {
			t.Errorf("request %d: %+v, peeked %v", i, d, peeked)
		}
	}
	if store.calls != 2 {
		t.Errorf("%d calls, want the two for the region", store.calls)
	}
}

// TestAutoLocal checks that the share decides only while the shard is saturated.
func TestAutoLocal(t *testing.T) {
	store := &crowded{counted: counted{Store: memory.New(memory.Options{Buckets: 1000})}}
	l := placed(t, store, limit.PlacementAutoLocal)
	for _, saturated := range []bool{false, true, false} {
		store.saturated = saturated
		want := limit.SourceStore
		if saturated {
			want = limit.SourceLease
		}
		if d := decide(l, limit.Request{Tenant: "t", Cost: 1})[0]; d.Source != want {
			t.Errorf("saturated %v: %+v", saturated, d)
		}
	}
}

// placed returns one of two limiters with a tenant's limit of 10 with the given
// placement, and a region's limit of 1 in the store.
func placed(t *testing.T, store limiter.Store, place limit.Placement) *limiter.Limiter {
	t.Helper()
	addrs, err := limit.NewAddrHasher([]byte("a secret for tests only"), limit.Prefixes{})
	if err != nil {
		t.Fatal(err)
	}
	set := storetest.Compile(t,
		storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "10/366d", OnError: "closed"},
		storetest.Spec{ID: "region", By: []string{"region"}, Rate: "1/366d"},
	)
	set.Limits[0].Store = place
	if set.Limits[0].ID != "tenant" {
		set.Limits[0].Store, set.Limits[1].Store = limit.PlacementShared, place
	}
	return limiter.New(limiter.Options{
		Store: store, Backstop: backstop.New(backstop.Options{Instances: func() int { return 2 }}), Addrs: addrs, Timeout: time.Second,
		Now: func() time.Time { return start }, Instances: func() int { return 2 },
	}, set)
}
