package limit_test

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// TestHashedDimension checks that the name of a bucket has a hash of a value, that the secret decides which, that after a
// rotation both buckets count, and that conditions are on the value as it is sent.
func TestHashedDimension(t *testing.T) {
	set := parse(t, `{version: 1, default_plan: p, dimensions: {key: {hash: true}, user: {}}, plans: {p: [
		{id: key, by: [tenant, "key|user"], rate: 1/s}, {id: live, by: [tenant, "key|user"], when: {key: "sk_live_*"}, rate: 2/s, replaces: [key]}]}}`)
	hasher := func(secret string) *limit.AddrHasher {
		h, err := limit.NewAddrHasher([]byte(strings.Repeat(secret, 16)), limit.Prefixes{})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	names := func(h *limit.AddrHasher, dim, value string) (names []string) {
		var b limit.Buffer
		set.Resolve(&limit.Request{Tenant: "t", Cost: 1, Dims: []limit.Dim{{Name: dim, Value: value}}}, h, 0, &b)
		for i := range b.Items {
			names = append(names, string(b.Items[i].Name))
		}
		return names
	}
	a, b := hasher("a"), hasher("b")
	one := names(a, "key", "sk_live_1")
	if len(one) != 1 || !strings.HasPrefix(one[0], "lg:t:{t}:live;t;key|user=0:") || strings.Contains(one[0], "sk_live") {
		t.Errorf("the buckets are %q", one)
	}
	if again := names(a, "key", "sk_live_1"); again[0] != one[0] {
		t.Errorf("one value has the buckets %q and %q", one, again)
	}
	for _, other := range [][]string{names(b, "key", "sk_live_1"), names(a, "key", "sk_live_2"), names(a, "key", "sk_test_1")} {
		if len(other) != 1 || other[0] == one[0] {
			t.Errorf("another value, or secret, has the buckets %q", other)
		}
	}
	if user := names(a, "user", "u1"); len(user) != 1 || !strings.HasSuffix(user[0], "key|user=1:u1") {
		t.Errorf("a user has the buckets %q", user)
	}
	if err := b.Rotate([]byte(strings.Repeat("a", 16))); err != nil {
		t.Fatal(err)
	}
	if both := names(b, "key", "sk_live_1"); len(both) != 2 || both[1] != one[0] {
		t.Errorf("after a rotation the buckets are %q, want %q too", both, one[0])
	}
	if user := names(b, "user", "u1"); len(user) != 1 {
		t.Errorf("after a rotation a user has the buckets %q", user)
	}
}

// TestFitValue: a value that is too long for a name becomes one that fits, and differs from others.
func TestFitValue(t *testing.T) {
	long := strings.Repeat("a", limit.MaxNameBytes)
	if got := limit.FitValue(long); got != long {
		t.Errorf("%q", got)
	}
	a, b := limit.FitValue(long+"a"), limit.FitValue(long+"b")
	if a == b || a != limit.FitValue(long+"a") || limit.CheckName(a) != nil {
		t.Errorf("%q and %q", a, b)
	}
	for value, begin := range map[string]string{"": "", "/admin" + long: "/admin" + long[:179] + "sha256-", "key\xff": "keysha256-", "\x00": "sha256-", strings.Repeat("a", 184) + "é" + long: strings.Repeat("a", 184) + "sha256-"} {
		got := limit.FitValue(value)
		if !strings.HasPrefix(got, begin) || value != "" && (limit.CheckName(got) != nil || len(got) != len(begin)+64) {
			t.Errorf("%q is %q", value, got)
		}
	}
}

// TestHashedValues: each of more values than are cached has a text of its own, whatever becomes of the bytes behind it.
func TestHashedValues(t *testing.T) {
	h, err := limit.NewAddrHasher([]byte(strings.Repeat("s", 32)), limit.Prefixes{})
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	buffer := make([]byte, 8)
	for round := range 2 {
		for i := range 20_000 {
			copy(buffer, fmt.Sprintf("%08d", i))
			value := unsafe.String(&buffer[0], len(buffer)) // as that of a command, whose buffer is used again
			text := string(h.AppendValue(nil, value))
			if other, twice := texts[text]; twice != (round == 1) || twice && other != value {
				t.Fatalf("%s has the text of %s", value, other)
			}
			texts[text] = strings.Clone(value)
		}
	}
}

// TestHashedChange: a change of hash is one of each limit that counts by the dimension.
func TestHashedChange(t *testing.T) {
	const file = "{version: 1, default_plan: p, dimensions: {key: {hash: %s}}, plans: {p: [{id: key, by: [tenant, key], rate: 1/s}]}}"
	got := limit.Changes(parse(t, strings.Replace(file, "%s", "false", 1)), parse(t, strings.Replace(file, "%s", "true", 1)))
	if len(got) != 1 || got[0] != "plan p: key hash of none -> key" {
		t.Errorf("%q", got)
	}
}

// TestCountsInClear: values stand in names of buckets where a limit in force counts by them, that of an override too, and
// the file does not say whether they are hashed.
func TestCountsInClear(t *testing.T) {
	const file = "{version: 1, default_plan: p, DIMS plans: {p: [{id: key, by: [tenant, key], rate: 1/s MODE}]} TENANTS}"
	for _, row := range []struct {
		dims, mode, tenants string
		want                bool
	}{
		{"", "", "", true},
		{"", ", mode: shadow", "", true},
		{"", ", mode: off", "", false},
		{"", ", mode: off", ", tenants: {a: {overrides: {key: {mode: enforce}}}}", true},
		{"dimensions: {key: {hash: false}},", "", "", false},
		{"dimensions: {key: {hash: true}},", "", "", false},
		{"dimensions: {key: {}},", "", "", true},
	} {
		set := parse(t, strings.NewReplacer("DIMS", row.dims, "MODE", row.mode, "TENANTS", row.tenants).Replace(file))
		if set.CountsInClear("key") != row.want || set.CountsInClear("other") {
			t.Errorf("%+v: %t", row, !row.want)
		}
	}
}

// TestHashedDimensionStrict checks that the strict rules ask for the secret.
func TestHashedDimensionStrict(t *testing.T) {
	const file = `{version: 1, default_plan: p, dimensions: {key: {hash: %s}}, plans: {p: [{id: key, by: [tenant, key], rate: 1/s, on_error: open}]}}`
	for hash, want := range map[string]string{"true": "strict: a limit counts hashed values, so a secret", "false": ""} {
		_, _, err := config.ParseLimits("f", []byte(strings.Replace(file, "%s", hash, 1)), limit.CompileOptions{Strict: true})
		if got := err != nil && strings.Contains(err.Error(), want); got != (want != "") {
			t.Errorf("hash: %s: %v", hash, err)
		}
	}
}

// BenchmarkHashedDimension measures resolving a request for three limits by one dimension, as it is sent and hashed.
func BenchmarkHashedDimension(b *testing.B) {
	h, err := limit.NewAddrHasher([]byte(strings.Repeat("a", 16)), limit.Prefixes{})
	if err != nil {
		b.Fatal(err)
	}
	for _, hash := range []string{"false", "true"} {
		b.Run("hash="+hash, func(b *testing.B) {
			set := parse(b, `{version: 1, default_plan: p, dimensions: {key: {hash: `+hash+`}}, plans: {p: [
				{id: a, by: [tenant, key], rate: 1/s}, {id: b, by: [tenant, key], group: b, rate: 2/m}, {id: c, by: [tenant, key], group: c, rate: 3/h}]}}`)
			req := limit.Request{Tenant: "t", Cost: 1, Dims: []limit.Dim{{Name: "key", Value: "sk_live_51H8xqKzJ2"}}}
			var buf limit.FastBuffer
			b.ReportAllocs()
			for b.Loop() {
				buf.Reset()
				set.ResolveFast(&req, h, 0, &buf)
			}
		})
	}
}
