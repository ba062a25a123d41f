package limit_test

import (
	"net/netip"
	"testing"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
)

// TestResolveFastRefuses checks that requests which need more than one step are left to Resolve.
func TestResolveFastRefuses(t *testing.T) {
	set := storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "10/s", Burst: "10"})
	inline, err := limit.NewInlineLimit(1, 1e6, 5)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := limit.NewAddrHasher([]byte("a secret for tests only"), limit.Prefixes{})
	if err != nil {
		t.Fatal(err)
	}
	rotated, err := limit.NewAddrHasher([]byte("another secret for tests"), limit.Prefixes{})
	if err != nil {
		t.Fatal(err)
	}
	if err := rotated.Rotate([]byte("a secret for tests only")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		req   limit.Request
		addrs *limit.AddrHasher
		want  int // items
	}{
		{"a check", limit.Request{Tenant: "t", Cost: 2}, plain, 1},
		{"a check with op and address", limit.Request{Tenant: "t", Op: "o", Addr: netip.MustParseAddr("192.0.2.1"), Cost: 2}, plain, 1},
		{"a bypass", limit.Request{Tenant: "t", Cost: 2, Bypass: true}, plain, 0},
		{"an id", limit.Request{Tenant: "t", Cost: 2, ID: "x"}, plain, 0},
		{"an inline limit", limit.Request{Tenant: "t", Cost: 2, Inline: inline, Key: "k"}, plain, 0},
		{"a rotated secret", limit.Request{Tenant: "t", Cost: 2}, rotated, 0},
		{"an escaped tenant", limit.Request{Tenant: "t}", Cost: 2}, plain, 0},
		{"a tenant like an escaped one", limit.Request{Tenant: "t%7D", Cost: 2}, plain, 0},
	}
	for _, test := range tests {
		var b limit.FastBuffer
		items := set.ResolveFast(&test.req, test.addrs, 0, &b)
		if len(items) != test.want || len(b.Items) != test.want {
			t.Errorf("%s: %d items, want %d", test.name, len(items), test.want)
		}
		if test.want > 0 && (string(items[0].Rest) != ":n;t" || items[0].Cost != 2) {
			t.Errorf("%s: %q costs %d", test.name, items[0].Rest, items[0].Cost)
		}
	}
}
