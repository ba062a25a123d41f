package limit_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// everyLevelFile has limits of several levels, groups and kinds, and such that allow at every level.
const everyLevelFile = `
version: 1
default_plan: free
plans:
  free:
    - {id: tenant, by: [tenant], rate: 100/s}
    - {id: quota, by: [tenant], group: quota, rate: 1000/month, algorithm: fixed_window}
    - {id: login, by: [tenant, op], when: {op: "POST /login"}, rate: 20/m, missing: deny}
    - {id: key, by: [tenant, api_key], rate: 5/s, missing: deny}
    - {id: jobs, by: [tenant], algorithm: concurrency, slots: 3}
    - {id: watched, by: [tenant, op], rate: 1/s, mode: shadow, group: watched}
    - {id: closed, by: [tenant, op], when: {op: "DELETE /*"}, action: deny}
    - {id: guarded, by: [tenant], group: guarded, when: {op: "PUT /*"}, action: deny}
    - {id: puts, by: [tenant, op], group: puts, when: {op: "PUT /*"}, rate: 5/s, replaces: [guarded]}
    - {id: staff, when: {user: "staff-*"}, action: allow}
    - {id: trial, when: {user: "trial-*"}, action: allow, mode: shadow}
  unlimited:
    - {id: everything, action: allow}
tenants:
  acme: {plan: free, overrides: {tenant: {rate: 500/s}, staff: {mode: "off"}}}
  ops: {plan: unlimited}
shared:
  - {id: ip, by: [ip], rate: 1000/m}
  - {id: all, by: [], rate: 5000/s}
  - {id: office, when: {ip: 198.51.100.0/24}, action: allow}
  - {id: banned, when: {tenant: evil}, action: deny}
`

// TestEveryLevel: a limit that allows and has no by lifts the limits that count, of all levels, groups, plans and modes.
// It leaves those that deny.
func TestEveryLevel(t *testing.T) {
	set, _, err := config.ParseLimits("f", []byte(everyLevelFile), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := limit.NewAddrHasher([]byte(strings.Repeat("k", 32)), limit.Prefixes{})
	if err != nil {
		t.Fatal(err)
	}
	const office, elsewhere, free = "198.51.100.7", "192.0.2.7", "tenant quota key all watched ip"
	for _, c := range []struct{ tenant, op, ip, user, want string }{
		{"x", "GET /", elsewhere, "", free},
		{"x", "GET /", office, "", ""},
		{"acme", "POST /login", office, "", ""},
		{"acme", "GET /", elsewhere, "", free},
		{"x", "GET /", elsewhere, "staff-1", ""},
		{"acme", "GET /", elsewhere, "staff-1", free}, // the override is off
		{"x", "GET /", elsewhere, "trial-1", free},    // in shadow mode
		{"ops", "GET /", elsewhere, "", ""},
		{"x", "DELETE /a", office, "", "closed"},
		{"x", "PUT /a", elsewhere, "", free + " puts"},
		{"x", "PUT /a", office, "", ""}, // guarded is replaced, and what replaces it is lifted
		{"evil", "GET /", office, "", "banned"},
		{"evil", "DELETE /a", office, "staff-1", "closed banned"},
	} {
		req := &limit.Request{Tenant: c.tenant, Op: c.op, Addr: netip.MustParseAddr(c.ip), Cost: 1, Dims: []limit.Dim{{Name: "api_key", Value: "k"}}, Hold: limit.HoldNone}
		if c.user != "" {
			req.Dims = append(req.Dims, limit.Dim{Name: "user", Value: c.user})
		}
		var b limit.Buffer
		set.Resolve(req, addrs, 0, &b)
		if got := itemIDs(b.Items); !slices.Equal(got, sortedWords(c.want)) {
			t.Errorf("%+v: items of %q, want %q", c, got, c.want)
		}
		var applying []string
		for _, e := range set.Explain(req) {
			if e.Applies && e.Limit.Action != limit.ActionAllow {
				applying = append(applying, e.Limit.ID)
			}
		}
		slices.Sort(applying)
		if !slices.Equal(applying, sortedWords(c.want)) {
			t.Errorf("%+v: Explain has %q, want %q", c, applying, c.want)
		}
	}
}

func itemIDs(items []limit.Item) (ids []string) {
	for i := range items {
		ids = append(ids, items[i].Limit.ID)
	}
	slices.Sort(ids)
	return ids
}

func sortedWords(text string) []string { return slices.Sorted(strings.FieldsSeq(text)) }

// TestEveryLevelSlots: it lifts limits of concurrency, and a request without any limit has nothing unmet.
func TestEveryLevelSlots(t *testing.T) {
	set, _, err := config.ParseLimits("f", []byte(everyLevelFile), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	req := &limit.Request{Tenant: "x", Op: "GET /", Addr: netip.MustParseAddr("198.51.100.7"), Cost: 1, Hold: limit.HoldSlot}
	var b limit.Buffer
	if set.Resolve(req, nil, 0, &b); len(b.Items) != 0 {
		t.Errorf("items of %q", itemIDs(b.Items))
	}
	if unmet, met := set.Unmet(req); !met || len(unmet) > 0 {
		t.Errorf("Unmet: %v %v", unmet, met)
	}
}

// TestEveryLevelReasons: Explain names the limit that allows.
func TestEveryLevelReasons(t *testing.T) {
	set, _, err := config.ParseLimits("f", []byte(everyLevelFile), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	req := &limit.Request{Tenant: "evil", Op: "GET /", Addr: netip.MustParseAddr("198.51.100.7"), Cost: 1, Dims: []limit.Dim{{Name: "user", Value: "trial-1"}}}
	for _, e := range set.Explain(req) {
		reasons[e.Limit.ID] = e.Reason
	}
	for id, want := range map[string]string{
		"tenant": "lifted by office", "key": "lifted by office", "watched": "lifted by office",
		"login": "when op: POST /login does not hold", "office": limit.ReasonAllows, "trial": "would pass every level", "banned": limit.ReasonRefuses,
		"staff": "when user: staff-* does not hold",
	} {
		if reasons[id] != want {
			t.Errorf("%s: %q, want %q", id, reasons[id], want)
		}
	}
}
