package rlsconfig

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// hexHash stands for an HMAC of addresses.
func hexHash(dst []byte, value string) []byte { return hex.AppendEncode(dst, []byte(value)) }

// TestCountersAreDistinct compares the names of the counters of random rules and requests: they are
// equal exactly if the domain, the rule and the values that count are equal.
func TestCountersAreDistinct(t *testing.T) {
	domains := []string{"d", "d;a=c", "d;", "d;a:", "d:d", strings.Repeat("d", 300)}
	rapid.Check(t, func(rt *rapid.T) {
		hash := rapid.SampledFrom([]AddressHasher{nil, hexHash}).Draw(rt, "hash")
		names := map[string]string{} // what they name
		counters := map[string]string{}
		check := func(name []byte, counter string) {
			if other, ok := names[string(name)]; ok && other != counter {
				rt.Fatalf("%s and %s share the name %s", other, counter, name)
			}
			if other, ok := counters[counter]; ok && other != string(name) {
				rt.Fatalf("%s has the names %s and %s", counter, other, name)
			}
			names[string(name)], counters[counter] = counter, string(name)
		}
		number := 0
		for _, domain := range domains {
			level := drawLevel(rt, 2, &number)
			prefix := rapid.SampledFrom([]string{"", "d", "p:", strings.Repeat("p", 2000)}).Draw(rt, "prefix")
			d := parsed(t, Options{Prefix: prefix}, fileOf(domain, level)).Domain(domain)
			for range 20 {
				entries := drawEntries(rt)
				check(d.AppendCounter(nil, entries, hash), fmt.Sprintf("%q %q own %q", prefix, domain, entries))
				if rule := d.Match(entries); rule != nil {
					check(rule.AppendCounter(nil, entries, hash), fmt.Sprintf("%q %q %s", prefix, domain, counted(naive(level, entries), entries)))
				}
			}
		}
	})
}

// counted returns a text that differs for two requests if they have different counters.
func counted(met []drawn, entries []Entry) string {
	text := ""
	for i, d := range met {
		text += fmt.Sprintf("%q %q ", d.key, d.value)
		if d.value == "" || strings.Contains(d.value, "*") && !d.shared {
			text += fmt.Sprintf("%q ", entries[i].Value)
		}
	}
	return text
}

// TestCounterNames has names word for word: a store keeps them beyond a release.
func TestCounterNames(t *testing.T) {
	file := "domain: 'a;b'\ndescriptors:\n- {key: 'k:=', value: '{v}:='}\n- {key: k}\n- {key: p, value: '*:*'}\n- {key: s, value: '*:*', share_threshold: true}\n- {key: ip, value: 192.0.2.1}\n- {key: ip}\n" +
		"- {key: a, descriptors: [{key: b, descriptors: [{key: c, descriptors: [{key: d, value: x}, {key: d, value: y}]}]}]}\n"
	d := parsed(t, Options{AddressKeys: []string{"ip"}}, File{"f", []byte(file)}).Domain("a;b")
	long := strings.Repeat("x", 257)
	for _, row := range []struct {
		entries   []Entry
		want, own string
	}{
		{entriesOf("k:=", "{v}:="), "a%3Bb;k%3A%3D=%7Bv%7D%3A%3D", "a%3Bb;;k%3A%3D:%7Bv%7D:="},
		{entriesOf("k", "x;y%"), "a%3Bb;k:x%3By%25", "a%3Bb;;k:x%3By%25"},
		{entriesOf("k", ""), "a%3Bb;k:", "a%3Bb;;k:"},
		{entriesOf("k", long[1:]), "a%3Bb;k:" + long[1:], "a%3Bb;;k:" + long[1:]},
		{entriesOf("k", long), "a%3Bb;k:%#15eb95a462ee20bd91a415ae2d4aed34", "a%3Bb;;k:%#15eb95a462ee20bd91a415ae2d4aed34"},
		{entriesOf("p", "1:2"), "a%3Bb;p=*%3A*:1:2", "a%3Bb;;p:1:2"},
		{entriesOf("s", "1:2"), "a%3Bb;s=*%3A*", "a%3Bb;;s:1:2"},
		{entriesOf("a", "1", "b", "2", "c", "3", "d", "x"), "a%3Bb;a:1;b:2;c:3;d=x", "a%3Bb;;a:1;b:2;c:3;d:x"},
		{entriesOf("ip", "192.0.2.1"), "a%3Bb;ip=3139322e302e322e31", "a%3Bb;;ip:3139322e302e322e31"},
		{entriesOf("ip", "192.0.2.2"), "a%3Bb;ip:3139322e302e322e32", "a%3Bb;;ip:3139322e302e322e32"},
	} {
		got := string(d.Match(row.entries).AppendCounter([]byte("in front "), row.entries, hexHash))
		own := string(d.AppendCounter(nil, row.entries, hexHash))
		if got != "in front "+row.want || own != row.own {
			t.Errorf("%.40q has the counter\n%s and, with its own limit,\n%s, want\n%s and\n%s", row.entries, got, own, row.want, row.own)
		}
	}
	if got := string(d.AppendCounter(nil, entriesOf("k", "a", "k", "b"), nil)); got != "a%3Bb;;k:a;k:b" {
		t.Errorf("the name is %s", got)
	}
}

// TestStatKeys has the texts of the levels for metrics, as envoyproxy/ratelimit writes them.
func TestStatKeys(t *testing.T) {
	file := `
domain: d
descriptors:
- key: a
  descriptors:
  - {key: b, value: "x*", rate_limit: {unit: day, requests_per_unit: 1}, descriptors: [{key: c, value_to_metric: true}]}
- key: m
  value_to_metric: true
  descriptors: [{key: n, value: "x*", value_to_metric: true}, {key: s, value: "x*", value_to_metric: true, share_threshold: true}, {key: e, value: v, value_to_metric: true}]
- {key: p, value: "x*", detailed_metric: true}
- {key: s, value: "x*", detailed_metric: true, share_threshold: true}
`
	d := parsed(t, Options{}, File{"f", []byte(file)}).Domain("d")
	for _, row := range []struct {
		entries []Entry
		path    string
		keys    string // the first two levels of the path
		stat    string
		vary    bool
	}{
		{entriesOf("a", "1", "b", "xy"), "a.b_x*", "a b_x*", "a b_x*", false},
		{entriesOf("a", "1", "b", "xy", "c", "2"), "a.b_x*.c", "a b_x*", "a b_x* c_2", false},
		{entriesOf("m", "1", "n", "xy"), "m.n_x*", "m n_x*", "m_1 n_xy", true},
		{entriesOf("m", "", "s", "xy"), "m.s_x*", "m s_x*", "m s_x*", true},
		{entriesOf("m", "1", "e", "v"), "m.e_v", "m e_v", "m_1 e_v", true},
		{entriesOf("p", "xy"), "p_x*", "p_x* ", "p_xy", true},
		{entriesOf("s", "xy"), "s_x*", "s_x* ", "s_x*", false},
	} {
		rule := d.Match(row.entries)
		key1, key2 := rule.StatKeys()
		var levels []string
		for i := range row.entries {
			levels = append(levels, string(rule.AppendStatKey(nil, i, row.entries)))
		}
		stat := strings.Join(levels, " ")
		if rule.Path != row.path || key1+" "+key2 != row.keys || stat != row.stat || rule.StatKeysVary() != row.vary {
			t.Errorf("%v meets %s with the keys %s %s, %s, varying: %t; want %+v", row.entries, rule.Path, key1, key2, stat, rule.StatKeysVary(), row)
		}
	}
}

// TestLongCounters checks that a request with many entries has a short name of its own.
func TestLongCounters(t *testing.T) {
	d := parsed(t, Options{Prefix: "p"}, fileOf("d", nil)).Domain("d")
	names := map[string]bool{}
	for n := range 300 {
		var entries []Entry
		for range n + 1 {
			entries = append(entries, Entry{"k", "{{{{{{{{"})
		}
		name := string(d.AppendCounter([]byte("in front "), entries, hexHash))
		if len(name) > len("in front ")+maxCounter || names[name] || strings.HasPrefix(name, "in front %##") != (n >= 37) {
			t.Fatalf("%d entries have the name %s", n+1, name)
		}
		names[name] = true
	}
}
