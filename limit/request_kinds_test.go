package limit_test

import (
	"slices"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// TestRequestKinds: each kind has the calls that Resolve makes of such a request.
func TestRequestKinds(t *testing.T) {
	set, _, err := config.ParseLimits("limits.yaml", []byte(`
version: 1
default_plan: free
dimensions: {op: {values: [read, write]}, user: {}, region: {}}
plans:
  free:
    - {id: tenant, by: [tenant], rate: 10/s}
    - {id: op, by: [tenant, op], rate: 5/s}
    - {id: user, by: [tenant, user], rate: 5/s}
    - {id: near, by: [tenant], group: near, rate: 5/s, store: local}
    - {id: own, by: [tenant], group: own, rate: 5/s, when: {region: "eu*"}}
    - {id: busy, by: [tenant], algorithm: concurrency, slots: 5}
  paid:
    - {id: tenant, by: [tenant], rate: 100/s}
shared:
  - {id: ip, by: [ip], rate: 10/s}
  - {id: all, by: [], rate: 1000/s}
  - {id: blocked, action: deny, when: {ip: 192.0.2.0/24}}
`), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []limit.RequestKind{
		{Plan: "free", Fields: 2, Keys: 1, Elsewhere: 2, Local: 1},
		{Plan: "free", When: "region: eu*", Fields: 3, Keys: 1, Elsewhere: 2, Local: 1},
		{Plan: "free", When: "ip: 192.0.2.0/24"},
		{Plan: "paid", Fields: 1, Elsewhere: 2},
		{Plan: "paid", When: "ip: 192.0.2.0/24"},
	}
	if got := set.RequestKinds(); !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := set.PlanKeys("free"); got.ByValue != 2 || got.Fields < 3 {
		t.Errorf("keys of free: %+v", got)
	}
	addrs, err := limit.NewAddrHasher(limit.RandomSecret(), limit.Prefixes{})
	if err != nil {
		t.Fatal(err)
	}
	var b limit.Buffer
	addr, _ := limit.ParseAddr("203.0.113.7")
	r := set.Resolve(&limit.Request{Tenant: "t", Op: "read", Addr: addr, Dims: []limit.Dim{{Name: "user", Value: "u"}}, Cost: 1}, addrs, 0, &b)
	items, calls := 0, 0
	for _, c := range b.Calls[r.FirstCall:r.LastCall] {
		if items += c.Last - c.First; !c.Local {
			calls++
		}
	}
	if k := want[0]; items != k.Fields+k.Keys+k.Elsewhere+k.Local || calls != 1+k.Elsewhere {
		t.Errorf("Resolve makes %d items and %d calls, of the kind %+v", items, calls, k)
	}
}
