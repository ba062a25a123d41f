package limit_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/limit"
)

// listing returns limits that list tenants.
func listing(tb testing.TB, tenants ...string) *limit.Set {
	tb.Helper()
	var b strings.Builder
	b.WriteString("version: 1\ndefault_plan: p\nplans: {p: [{id: a, by: [tenant], rate: 10/s}]}\ntenants:\n")
	for _, tenant := range tenants {
		fmt.Fprintf(&b, "  %q: {plan: p}\n", tenant)
	}
	return parse(tb, b.String())
}

func anyTenant(string) bool { return true }

// TestListedNear: a tenant with one mistake, or two in a longer name, is taken for a listed one, and one that shares a prefix
// or differs in digits is not.
func TestListedNear(t *testing.T) {
	set := listing(t, "acme", "initech", "globex-corporation", "customer-alpha", "shop-1", "abc", "bäcker")
	for tenant, want := range map[string]string{
		"acmee": "acme", "amce": "acme", "acm": "", "acxx": "", "initec": "initech", "inittech": "initech", "iintech": "initech",
		"globex-corporatoin": "globex-corporation", "globx-corporaton": "globex-corporation", "globx-corporatn": "",
		"customer-gamma": "", "customer-alpa": "customer-alpha", "shop-2": "", "shop-12": "", "shop1": "shop-1", "abd": "", "acme": "", "backer": "bäcker", "bäckre": "bäcker",
	} {
		if got := set.ListedNear(tenant, anyTenant); got != want {
			t.Errorf("%s is near to %q, want %q", tenant, got, want)
		}
	}
	if got := set.ListedNear("acmee", func(string) bool { return false }); got != "" {
		t.Errorf("it names %q, which the caller may not learn of", got)
	}
}

// TestListedNearEdits: a listed tenant is found behind one edit of its name, and behind two of a longer one.
func TestListedNearEdits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// Some letters of these have bytes in common.
		listed := rapid.StringMatching("[a-dàáßā€₭]{5,12}").Draw(rt, "listed")
		tenant := listed
		edits := rapid.IntRange(1, 1+utf8.RuneCountInString(listed)/10).Draw(rt, "edits")
		for range edits {
			word := []rune(tenant)
			at := rapid.IntRange(0, len(word)-2).Draw(rt, "at")
			before, letter, behind := string(word[:at]), rapid.StringMatching("[a-dàáßā€₭]").Draw(rt, "letter"), word[at:]
			edited := []string{before + letter + string(behind), before + string(behind[1:]), before + letter + string(behind[1:])}
			if edits == 1 { // an edit between two letters that changed places is a third one
				edited = append(edited, before+string([]rune{behind[1], behind[0]})+string(behind[2:]))
			}
			tenant = rapid.SampledFrom(edited).Draw(rt, "edited")
		}
		if tenant == listed {
			return
		}
		if got := listing(t, listed).ListedNear(tenant, anyTenant); got != listed {
			rt.Errorf("%s is near to %q, want %q", tenant, got, listed)
		}
	})
}

// TestListedFar: a tenant is near to no listed one behind more different letters, whatever bytes these have in common, and the search
// takes no memory.
func TestListedFar(t *testing.T) {
	set := listing(t, "ààààà", "€€€€€€€€€")
	for _, tenant := range []string{"ààáá", "áááà", "àà", "€€€€€€₭₭₭", "€€€€€€", "₭₭₭€€€€€€", "\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3"} {
		if got := set.ListedNear(tenant, anyTenant); got != "" {
			t.Errorf("%s is near to %s", tenant, got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { set.ListedNear("€€€€€€₭₭₭", anyTenant) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkListedNear measures the search for the longest name among as many as are compared.
func BenchmarkListedNear(b *testing.B) {
	var tenants []string
	for i := range 1000 {
		tenants = append(tenants, fmt.Sprintf("%s%03d", strings.Repeat("a", 250), i))
	}
	set, tenant := listing(b, tenants...), strings.Repeat("a", 125)+strings.Repeat("b", 128)
	b.ReportAllocs()
	for b.Loop() {
		if got := set.ListedNear(tenant, anyTenant); got != "" {
			b.Fatal(got)
		}
	}
}
