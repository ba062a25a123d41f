package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestNoKeyWithoutExpiry checks that buckets in a hash, as the release before this one
// writes them, leave no key without an expiry if the user lacks the right to set one.
func TestNoKeyWithoutExpiry(t *testing.T) {
	node := redistest.Start(t)
	s, err := openWith(t.Context(), Options{Addrs: []string{node.Addr}, IOTimeout: 5 * time.Second, DialTimeout: 5 * time.Second}, newDecideScript(1))
	if err != nil {
		t.Fatal(err)
	}
	running(t, s)
	admin := redistest.Restrict(t, node, strings.Fields(strings.Replace(Rights, "+pexpireat", "", 1))...)
	one := compile(t, spec{ID: "a", By: []string{"tenant"}, Rate: "100/s"})
	two := compile(t, spec{ID: "a", By: []string{"tenant"}, Rate: "100/s"}, spec{ID: "b", By: []string{"tenant"}, Rate: "100/s"})
	for i, set := range []*limit.Set{one, two} {
		var b limit.Buffer
		set.Resolve(&limit.Request{Tenant: fmt.Sprint("t", i), Cost: 1}, testAddrs, time.Now().UnixMicro(), &b)
		s.Take(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
		if b.Items[0].Source != limit.SourceNone {
			t.Errorf("%d limits are decided by %s", i+1, b.Items[0].Source)
		}
	}
	if keys := admin.Keys(t.Context(), "lg:t:{t*").Val(); len(keys) > 0 { // that of Open has one
		t.Errorf("keys without an expiry are left: %v", keys)
	}
}

// TestExpiryBeforeValue checks that a field is not written if the expiry of the tenant's
// string, which must become later for it, cannot be set.
func TestExpiryBeforeValue(t *testing.T) {
	node := redistest.Start(t)
	s := open(t, node.Addr)
	admin := redistest.Restrict(t, node, strings.Fields(strings.Replace(Rights, "+pexpireat", "", 1))...)
	brief, long := spec{ID: "brief", By: []string{"tenant"}, Rate: "100/s"}, spec{ID: "long", By: []string{"tenant"}, Rate: "100/h"}
	for i, sets := range [][]*limit.Set{
		{compile(t, brief), compile(t, long)},
		{compile(t, brief), compile(t, brief, long)},
		{compile(t, long, brief), compile(t, spec{ID: "long", By: []string{"tenant"}, Rate: "100/d"}, brief)},
	} {
		req := limit.Request{Tenant: fmt.Sprint("t", i), Cost: 1}
		take(t, s, sets[0], req)
		key := limit.TenantKey(req.Tenant)
		before := admin.Get(t.Context(), key).Val()
		var b limit.Buffer
		sets[1].Resolve(&req, testAddrs, time.Now().UnixMicro(), &b)
		s.Take(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
		if got := b.Items[0].Source; got != limit.SourceNone {
			t.Errorf("case %d: decided by %s", i, got)
		}
		if after := admin.Get(t.Context(), key).Val(); textOf(after) != textOf(before) {
			t.Errorf("case %d: the string became %q, it was %q", i, after, before)
		}
	}
}

// textOf returns the text of a string of fields, which names them and their parameters.
func textOf(value string) string { return value[8*int(value[len(value)-3]):] }
