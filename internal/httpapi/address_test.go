package httpapi

import (
	"net/netip"
	"strings"
	"testing"
)

// TestAddress: the entry that counts is never one that a client could have written.
func TestAddress(t *testing.T) {
	hops := func(n int) AddressRule { return AddressRule{Header: "X-Forwarded-For", Hops: n} }
	forwarded := func(n int) AddressRule { return AddressRule{Header: "Forwarded", Hops: n} }
	cidrs := AddressRule{Header: "X-Forwarded-For", Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}}
	const none = "none"
	for _, row := range []struct {
		name  string
		rule  AddressRule
		peer  string
		lines []string
		want  string
	}{
		{"no hops", hops(0), "10.0.0.1", []string{"6.6.6.6"}, "10.0.0.1"},
		{"the last", hops(1), "10.0.0.1", []string{"6.6.6.6, 203.0.113.7"}, "203.0.113.7"},
		{"the one before", hops(2), "10.0.0.1", []string{"6.6.6.6, 203.0.113.7, 10.9.9.9"}, "203.0.113.7"},
		{"over lines", hops(2), "10.0.0.1", []string{"6.6.6.6, 203.0.113.7", "10.9.9.9"}, "203.0.113.7"},
		{"lines in their order", hops(1), "10.0.0.1", []string{"6.6.6.6", "203.0.113.7"}, "203.0.113.7"},
		{"fewer than hops", hops(3), "10.0.0.1", []string{"6.6.6.6, 203.0.113.7"}, "10.0.0.1"},
		{"no header", hops(1), "10.0.0.1", nil, "10.0.0.1"},
		{"empty header", hops(1), "10.0.0.1", []string{""}, "10.0.0.1"},
		{"fewer on a Unix socket", hops(1), "", nil, none},
		{"a port", hops(1), "10.0.0.1", []string{"203.0.113.7:4711"}, "203.0.113.7"},
		{"v6", hops(1), "10.0.0.1", []string{"2001:db8::7"}, "2001:db8::7"},
		{"v6 in brackets", hops(1), "10.0.0.1", []string{"[2001:db8::7]"}, "2001:db8::7"},
		{"v6 with a port", hops(1), "10.0.0.1", []string{"[2001:db8::7]:4711"}, "2001:db8::7"},
		{"v4 in v6", hops(1), "10.0.0.1", []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		{"v4 in v6 with a port", hops(1), "10.0.0.1", []string{"[::ffff:203.0.113.7]:80"}, "203.0.113.7"},
		{"a zone", hops(1), "10.0.0.1", []string{"fe80::1%eth0"}, "fe80::1"},
		{"blanks", hops(1), "10.0.0.1", []string{" 6.6.6.6 ,\t203.0.113.7  "}, "203.0.113.7"},
		{"garbage", hops(1), "10.0.0.1", []string{"6.6.6.6, unknown"}, none},
		{"garbage before", hops(1), "10.0.0.1", []string{"garbage, 203.0.113.7"}, "203.0.113.7"},
		{"an empty entry", hops(1), "10.0.0.1", []string{"203.0.113.7,"}, none},
		{"a short form", hops(1), "10.0.0.1", []string{"127.1"}, none},
		{"leading zeros", hops(1), "10.0.0.1", []string{"010.0.0.1"}, none},
		{"many entries", hops(1), "10.0.0.1", []string{strings.Repeat("6.6.6.6,", 500) + "203.0.113.7"}, "203.0.113.7"},
		{"more hops than are read", hops(33), "10.0.0.1", []string{strings.Repeat("6.6.6.6,", 500) + "203.0.113.7"}, "10.0.0.1"},
		{"one header with an address", AddressRule{Header: "X-Real-IP", Hops: 1}, "10.0.0.1", []string{"203.0.113.7"}, "203.0.113.7"},

		{"the first untrusted", cidrs, "10.0.0.1", []string{"6.6.6.6, 203.0.113.7, 10.2.3.4"}, "203.0.113.7"},
		{"all trusted", cidrs, "10.0.0.1", []string{"10.1.1.1, 10.2.3.4"}, "10.1.1.1"},
		{"a peer that is not trusted", cidrs, "192.0.2.1", []string{"203.0.113.7"}, "192.0.2.1"},
		{"private is not trusted by itself", cidrs, "10.0.0.1", []string{"203.0.113.7, 192.168.0.1"}, "192.168.0.1"},
		{"garbage ends the walk", cidrs, "10.0.0.1", []string{"203.0.113.7, _x, 10.2.3.4"}, none},
		{"a Unix socket", cidrs, "", []string{"203.0.113.7, 10.2.3.4"}, "203.0.113.7"},
		{"trusted without a header", cidrs, "10.0.0.1", nil, "10.0.0.1"},
		{"v6 networks", cidrs, "2001:db8:1::1", []string{"2001:db8:2::7, 2001:db8:1::9"}, "2001:db8:2::7"},

		{"forwarded", forwarded(1), "10.0.0.1", []string{`for=6.6.6.6, for=203.0.113.7;proto=https;by=203.0.113.43`}, "203.0.113.7"},
		{"forwarded v6", forwarded(2), "10.0.0.1", []string{`for="[2001:db8:cafe::17]:4711", for=10.2.3.4`}, "2001:db8:cafe::17"},
		{"forwarded in capitals", forwarded(1), "10.0.0.1", []string{`Proto=https;For="203.0.113.7"`}, "203.0.113.7"},
		{"forwarded unknown", forwarded(1), "10.0.0.1", []string{`for=6.6.6.6, for=unknown`}, none},
		{"forwarded hidden", forwarded(1), "10.0.0.1", []string{`for=_hidden`}, none},
		{"commas in quotes", forwarded(2), "10.0.0.1", []string{`for=203.0.113.7;host="a,for=6.6.6.6;b\"", for=10.1.1.1`}, "203.0.113.7"},
		{"forwarded without for", forwarded(1), "10.0.0.1", []string{`for=6.6.6.6, proto=https`}, none},
		{"an open quote", forwarded(1), "10.0.0.1", []string{`for=6.6.6.6;x=", for=203.0.113.7`}, "203.0.113.7"},
		{"an open quote on another line", forwarded(1), "10.0.0.1", []string{`for=6.6.6.6;x="`, `for=203.0.113.7`}, "203.0.113.7"},
		{"an escaped quote", forwarded(1), "10.0.0.1", []string{`for=6.6.6.6;x="\`, `for="203.0.113.7"`}, "203.0.113.7"},
		{"a long quote", forwarded(1), "10.0.0.1", []string{`for=6.6.6.6;x="` + strings.Repeat(",for=6.6.6.6", 1000) + `", for=203.0.113.7`}, "203.0.113.7"},
		{"escapes in quotes", forwarded(2), "10.0.0.1", []string{`for=203.0.113.7, for=10.1.1.1;x="a\\";host="\","`}, "203.0.113.7"},
	} {
		peer := netip.Addr{}
		if row.peer != "" {
			peer = netip.MustParseAddr(row.peer)
		}
		got := row.rule.find(asBytes(row.lines), peer)
		want := netip.Addr{}
		if row.want != none {
			want = netip.MustParseAddr(row.want)
		}
		if got != want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// FuzzAddress: any header gives an address that a gateway added, or none, and reads a bounded part.
func FuzzAddress(f *testing.F) {
	f.Add("6.6.6.6, 203.0.113.7", 1, true)
	f.Add(`for="[2001:db8::1]:4711";proto=https, for=_x`, 2, false)
	f.Fuzz(func(t *testing.T, line string, hops int, plain bool) {
		r := AddressRule{Header: "Forwarded", Hops: hops&7 + 1}
		if plain {
			r.Header = "X-Forwarded-For"
		}
		const added = "198.51.100.9"
		last := "for=" + added
		if plain {
			last = added
		}
		// The gateways' own entries stand behind all that a client can send.
		lines := []string{line}
		for range r.Hops {
			lines = append(lines, last)
		}
		if got := r.find(asBytes(lines), netip.MustParseAddr("10.0.0.1")); got.String() != added {
			t.Errorf("%q with %d hops: %v", line, r.Hops, got)
		} else if got.IsValid() && got.Zone() != "" {
			t.Errorf("%q: zone of %v", line, got)
		}
	})
}

func asBytes(lines []string) (all [][]byte) {
	for _, l := range lines {
		all = append(all, []byte(l))
	}
	return all
}
