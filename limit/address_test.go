package limit

import (
	"net/netip"
	"strings"
	"testing"
)

func TestAddrHasher(t *testing.T) {
	secret := []byte("0123456789abcdef")
	h, err := NewAddrHasher(secret, Prefixes{})
	if err != nil {
		t.Fatal(err)
	}
	text := func(h *AddrHasher, addr string) string {
		a, err := ParseAddr(addr)
		if err != nil {
			t.Fatal(err)
		}
		return string(h.Append(nil, a))
	}
	for _, pair := range []struct {
		a, b string
		same bool
	}{
		{"203.0.113.7", "203.0.113.7", true},
		{"203.0.113.7", "::ffff:203.0.113.7", true},
		{"203.0.113.7", "203.0.113.8", false},
		{"2001:db8::1", "2001:db8::ffff:1", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"0.0.0.1", "::1", false},
	} {
		if same := text(h, pair.a) == text(h, pair.b); same != pair.same {
			t.Errorf("%s and %s are hashed alike: %v, want %v", pair.a, pair.b, same, pair.same)
		}
	}
	again, _ := NewAddrHasher(secret, Prefixes{})
	other, _ := NewAddrHasher([]byte("fedcba9876543210"), Prefixes{})
	narrow, _ := NewAddrHasher(secret, Prefixes{IPv6: 128})
	if text(h, "203.0.113.7") != text(again, "203.0.113.7") {
		t.Error("one secret, two hashes")
	}
	if text(h, "203.0.113.7") == text(other, "203.0.113.7") {
		t.Error("two secrets, one hash")
	}
	if text(narrow, "2001:db8::1") == text(narrow, "2001:db8::2") {
		t.Error("with 128 bits each IPv6 address is its own")
	}
	wide, _ := NewAddrHasher(secret, Prefixes{IPv4: 24})
	if text(wide, "203.0.113.7") != text(wide, "::ffff:203.0.113.200") || text(wide, "203.0.113.7") == text(wide, "203.0.112.7") || text(wide, "203.0.113.0") != text(h, "203.0.113.0") {
		t.Error("with 24 bits IPv4 addresses are grouped by something else")
	}
	for _, bits := range []Prefixes{{IPv4: -1}, {IPv4: 33}, {IPv6: -1}, {IPv6: 129}} {
		if _, err := NewAddrHasher(secret, bits); err == nil {
			t.Errorf("%+v are taken", bits)
		}
	}
	if got := text(h, "203.0.113.7"); len(got) != HashedAddrLen || strings.ContainsAny(got, "{}%;=") {
		t.Errorf("%q is not what a name can hold", got)
	}
	if _, err := NewAddrHasher(secret[:15], Prefixes{}); err == nil {
		t.Error("a secret of 15 bytes is taken")
	}
}

// TestAddrHasherForgets hashes more addresses than the cache has room for: each keeps its
// hash.
func TestAddrHasherForgets(t *testing.T) {
	h, err := NewAddrHasher([]byte("0123456789abcdef"), Prefixes{})
	if err != nil {
		t.Fatal(err)
	}
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}) }
	seen := map[string]int{}
	for i := range addrCacheSize + 40_000 {
		text := string(h.Append(nil, addr(i)))
		if other, ok := seen[text]; ok {
			t.Fatalf("%s and %s are hashed alike", addr(i), addr(other))
		}
		seen[text] = i
	}
	for text, i := range seen {
		if got := string(h.Append(nil, addr(i))); got != text {
			t.Fatalf("%s was %s and is %s", addr(i), text, got)
		}
	}
}

func TestParseAddr(t *testing.T) {
	for _, bad := range []string{"", "1.2.3", "1.2.3.4.5", "fe80::1%eth0", "1.2.3.4:80", " 1.2.3.4", "01.2.3.4", "localhost"} {
		if a, err := ParseAddr(bad); err == nil {
			t.Errorf("%q is taken for %s", bad, a)
		}
	}
}
