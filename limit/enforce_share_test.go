package limit_test

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// sharedLimits are limits of which a share is enforced.
func sharedLimits(tb testing.TB, share string) *limit.Set {
	tb.Helper()
	if share != "" {
		share = ", enforce: " + share
	}
	return parse(tb, `
version: 1
default_plan: p
plans:
  p:
    - {id: wide, by: [tenant], rate: 100/s}
    - {id: user, by: [tenant, user], rate: 10/s`+share+`}
    - {id: fine, by: [tenant], when: {op: "GET*"}, rate: 10/s`+share+`}
shared:
  - {id: ip, by: [ip], rate: 10/s`+share+`}
`)
}

// enforced returns which of n requests of a kind meet an enforced limit.
func enforced(tb testing.TB, set *limit.Set, id string, n int, request func(i int) limit.Request) map[int]bool {
	tb.Helper()
	in, addrs := map[int]bool{}, hasher(tb)
	var b limit.Buffer
	for i := range n {
		b.Reset()
		req := request(i)
		set.Resolve(&req, addrs, 1, &b)
		yes, watched := false, false
		for j := range b.Items {
			if it := &b.Items[j]; it.Limit.ID == id {
				yes, watched = yes || it.Enforced(), watched || !it.Enforced()
			}
		}
		if yes == watched {
			tb.Fatalf("request %d: %s should be either enforced or watched", i, id)
		}
		if yes {
			in[i] = true
		}
	}
	return in
}

// TestEnforceShare checks that each share has its part of the buckets, and all buckets of smaller
// shares.
func TestEnforceShare(t *testing.T) {
	const n = 20_000
	for id, request := range map[string]func(i int) limit.Request{
		"user": func(i int) limit.Request {
			return limit.Request{Tenant: "t", Dims: []limit.Dim{{Name: "user", Value: fmt.Sprint("u", i)}}}
		},
		"fine": func(i int) limit.Request { return limit.Request{Tenant: fmt.Sprint("tenant-", i), Op: "GET /"} },
		"ip": func(i int) limit.Request {
			return limit.Request{Tenant: "t", Addr: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})}
		},
	} {
		before := map[int]bool{}
		for _, share := range []float64{0.5, 10, 25, 50, 99.5} {
			in := enforced(t, sharedLimits(t, fmt.Sprint(share, "%")), id, n, request)
			want := n * share / 100
			if math.Abs(float64(len(in))-want) > 5*math.Sqrt(want)+1 { // five standard deviations
				t.Errorf("%s at %g%%: %d of %d buckets are enforced", id, share, len(in), n)
			}
			for i := range before {
				if !in[i] {
					t.Errorf("%s at %g%%: bucket %d was enforced at a smaller share", id, share, i)
				}
			}
			before = in
		}
	}
}

// TestEnforceShareOfClients checks that all addresses of a client are on one side.
func TestEnforceShareOfClients(t *testing.T) {
	set := sharedLimits(t, "50%")
	for network := range 30 {
		in := enforced(t, set, "ip", 20, func(i int) limit.Request {
			return limit.Request{Tenant: "t", Addr: netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 7: byte(network), 8: byte(i), 15: byte(i * 7)})}
		})
		if len(in) != 0 && len(in) != 20 {
			t.Fatalf("%d of 20 addresses of network %d are enforced", len(in), network)
		}
	}
}

// TestEnforceShareChangesNothingElse checks that in the share everything is as if the limit were
// enforced, and outside of it as if it were in shadow mode: the limit that it would replace stays.
func TestEnforceShareChangesNothingElse(t *testing.T) {
	share, all, none := sharedLimits(t, "30%"), sharedLimits(t, ""), parse(t, `
version: 1
default_plan: p
plans:
  p:
    - {id: wide, by: [tenant], rate: 100/s}
    - {id: user, by: [tenant, user], rate: 10/s, mode: shadow}
    - {id: fine, by: [tenant], when: {op: "GET*"}, rate: 10/s, mode: shadow}
shared:
  - {id: ip, by: [ip], rate: 10/s, mode: shadow}
`)
	both := map[bool]int{}
	for i := range 60 {
		req := limit.Request{Tenant: fmt.Sprint("t", i), Op: "GET /"}
		got := applied(t, share, req)
		want := applied(t, none, req)
		in := !strings.Contains(got, "fine?")
		if in {
			want = applied(t, all, req)
		}
		if both[in]++; got != want {
			t.Errorf("%s meets %q, want %q", req.Tenant, got, want)
		}
	}
	if both[true] == 0 || both[false] == 0 {
		t.Errorf("in and outside of the share: %v", both)
	}
}

// TestEnforceShareKeepsBuckets checks that a bucket has the same name on both sides.
func TestEnforceShareKeepsBuckets(t *testing.T) {
	for i := range 10 {
		var names []string
		for _, share := range []string{"1%", "99%"} {
			var b limit.Buffer
			sharedLimits(t, share).Resolve(&limit.Request{Tenant: fmt.Sprint("t", i), Op: "GET /"}, hasher(t), 1, &b)
			for j := range b.Items {
				if b.Items[j].Limit.ID == "fine" {
					names = append(names, string(b.Items[j].Name))
				}
			}
		}
		if len(names) != 2 || names[0] != names[1] {
			t.Fatalf("buckets %q", names)
		}
	}
}

// TestEnforceShareExplained checks that an explanation has the limit once, with its side.
func TestEnforceShareExplained(t *testing.T) {
	set, seen := sharedLimits(t, "30%"), map[string]bool{}
	for i := range 100 {
		n := 0
		for _, c := range set.Explain(&limit.Request{Tenant: fmt.Sprint("t", i), Op: "GET /"}) {
			if c.Limit.ID == "fine" {
				n++
				if !c.Applies {
					t.Errorf("t%d: does not apply: %s", i, c.Reason)
				}
				seen[c.Limit.DescribeMode()+": "+c.Reason] = true
			}
		}
		if n != 1 {
			t.Errorf("t%d: explained %d times", i, n)
		}
	}
	if len(seen) != 2 || !seen["enforce 30%: most specific of its level"] || !seen["shadow, 30% enforced: watches: its bucket is not in the enforced share"] {
		t.Errorf("got %v", seen)
	}
	for _, c := range set.Explain(&limit.Request{Tenant: "t", Op: "PUT /"}) {
		if c.Limit.ID == "fine" && (c.Applies || c.Limit.Mode != limit.ModeEnforce) {
			t.Errorf("of another op: %+v", c)
		}
	}
}

// TestEnforceShareMistakes checks the errors.
func TestEnforceShareMistakes(t *testing.T) {
	for rest, want := range map[string]string{
		"enforce: 10": "is not a percentage", "enforce: 1.234%": "is not a percentage", "enforce: -5%": "is not a percentage", "enforce: 0.001%": "is not a percentage",
		"enforce: 0%": "is mode: shadow", "enforce: 100%": "remove it", "enforce: 101%": "is more than all buckets",
		"enforce: 10%, mode: shadow": "mode: shadow enforces nothing", "enforce: 10%, mode: off": "mode: off enforces nothing",
	} {
		_, _, err := config.ParseLimits("x", []byte("version: 1\ndefault_plan: p\nplans:\n  p:\n    - {id: a, by: [tenant], rate: 1/s, "+rest+"}\n"), limit.CompileOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", rest, err, want)
		}
	}
	_, _, err := config.ParseLimits("x", []byte("version: 1\nshared:\n  - {id: a, action: deny, enforce: 10%}\n"), limit.CompileOptions{})
	if err == nil || !strings.Contains(err.Error(), "action: deny has no buckets") {
		t.Errorf("of a ban: %v", err)
	}
}

// TestEnforceShareLoosens checks that a smaller share is a looser limit, and an override may set it.
func TestEnforceShareLoosens(t *testing.T) {
	file := func(rest string) *limit.Set {
		return parse(t, "version: 1\ndefault_plan: p\nplans:\n  p:\n    - {id: a, by: [tenant], rate: 1/s"+rest+"}\n")
	}
	for _, c := range []struct{ was, is, want string }{
		{"", ", enforce: 50%", "enforce -> enforce 50%"},
		{", enforce: 50%", ", enforce: 20%", "enforce 50% -> enforce 20%"},
		{", enforce: 20%", ", mode: shadow", "enforce 20% -> shadow"},
		{", enforce: 20%", ", enforce: 50%", ""},
		{", enforce: 20%", "", ""},
		{", mode: shadow", ", enforce: 1%", ""},
	} {
		lines := strings.Join(limit.Loosened(file(c.was), file(c.is), nil), "\n")
		if c.want == "" && lines != "" || !strings.Contains(lines, c.want) {
			t.Errorf("from %q to %q: %q, want %q", c.was, c.is, lines, c.want)
		}
	}
	set := parse(t, "version: 1\ndefault_plan: p\nplans:\n  p:\n    - {id: a, by: [tenant], rate: 1/s, mode: shadow}\ntenants:\n  t: {overrides: {a: {enforce: 50%}}}\n  u: {overrides: {a: {rate: 2/s}}}\n")
	if got := applied(t, set, limit.Request{Tenant: "t"}); got != "a" && got != "a?" {
		t.Errorf("an override: %s", got)
	}
}
