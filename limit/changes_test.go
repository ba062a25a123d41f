package limit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

func parsed(t *testing.T, file string) *limit.Set {
	t.Helper()
	set, _, err := config.ParseLimits("limits.yaml", []byte(file), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestWarnPairsBound checks that a file made of pairs costs little: the comparison is bounded, and a
// limit is warned of once.
func TestWarnPairsBound(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\nshared:\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "  - {id: a%d, by: [ip], when: {op: o%d, region: eu}, rate: 1/s, on_error: open}\n  - {id: b%d, by: [ip], when: {user: u%d}, rate: 1/s, on_error: open}\n", i, i, i, i)
	}
	_, warnings, err := config.ParseLimits("limits.yaml", []byte(b.String()), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pairs := 0
	for _, w := range warnings {
		if w.Field == "when" {
			pairs++
		}
	}
	if pairs == 0 || pairs > 2000 {
		t.Errorf("%d warnings of pairs", pairs)
	}
}

const (
	changedBefore = `version: 1
default_plan: free
plans:
  free:
    - {id: tenant, by: [tenant], rate: 100/s}
    - {id: gone, by: [tenant, op], rate: 1/s}
    - {id: tried, by: [tenant, h], rate: 1/s, mode: shadow}
    - {id: mode, by: [tenant, a], rate: 1/s}
    - {id: closed, by: [tenant, b], rate: 1/s}
    - {id: when, by: [tenant, c], rate: 1/s, when: {op: x}}
  old: []
shared: [{id: ip, by: [ip], rate: 10/m}]
tenants:
  moves: {plan: old}
  leaves: {}
  overrides: {overrides: {tenant: {rate: 200/s}}}
  drops: {overrides: {tenant: {rate: 200/s}}}
`
	changedAfter = `version: 1
default_plan: free
plans:
  free:
    - {id: tenant, by: [tenant], rate: 50/s}
    - {id: come, by: [tenant, op], rate: 2/s}
    - {id: watcher, by: [tenant, d], rate: 2/s, mode: shadow}
    - {id: mode, by: [tenant, a], rate: 1/s, mode: shadow}
    - {id: closed, by: [tenant, b], rate: 2/s, on_error: closed, mode: off}
    - {id: when, by: [tenant, c], rate: 1/s, when: {op: y}}
  new: []
shared: [{id: ip, by: [ip], rate: 20/m}]
tenants:
  moves: {plan: free, overrides: {tenant: {rate: 7/s}}}
  comes: {}
  overrides: {overrides: {tenant: {rate: 300/s}}}
  drops: {}
`
)

// TestChanges checks the description of each kind of change, and that equal files have none.
func TestChanges(t *testing.T) {
	got := limit.Changes(parsed(t, changedBefore), parsed(t, changedAfter))
	want := []string{
		"shared: ip 10/m burst 10 -> 20/m burst 20",
		"plan free: tenant 100/s burst 100 -> 50/s burst 50",
		"plan free: gone 1/s burst 1 is gone",
		"plan free: tried 1/s burst 1, mode shadow, is gone",
		"plan free: mode mode enforce -> shadow",
		"plan free: closed mode enforce -> off, 1/s burst 1 -> 2/s burst 2, on_error open -> closed",
		"plan free: when when op: x -> op: y",
		"plan free: come 2/s burst 2 is new",
		"plan free: watcher 2/s burst 2, mode shadow, is new",
		"plan new is new",
		"plan old is gone",
		"tenant moves: plan old -> free",
		"tenant moves: tenant 7/s burst 7 is new",
		"tenant leaves is not listed any more",
		"tenant overrides: tenant 200/s burst 200 -> 300/s burst 300",
		"tenant drops: tenant 200/s burst 200 -> 50/s burst 50",
		"tenant comes is new",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := limit.Changes(parsed(t, changedBefore), parsed(t, changedBefore)); len(got) > 0 {
		t.Errorf("an equal file has changes: %q", got)
	}
	many := changedBefore
	for i := range 100 {
		many += fmt.Sprintf("  t%d: {}\n", i)
	}
	if got := limit.Changes(parsed(t, changedBefore), parsed(t, many)); len(got) != 21 || got[20] != "and 80 more" {
		t.Errorf("100 new tenants are %q", got)
	}
}

// TestChangedSettings checks that the description of a changed limit names each of its settings.
func TestChangedSettings(t *testing.T) {
	const plain = "id: a, by: [tenant], rate: 20/s"
	for after, want := range map[string]string{
		"id: a, by: [tenant, op], rate: 20/s":              "by tenant -> tenant, op",
		"id: a, by: [tenant], rate: 30/s, burst: 20":       "20/s burst 20 -> 30/s burst 20",
		"id: a, by: [tenant], action: deny, when: {op: x}": "20/s burst 20 -> deny, when none -> op: x",
		plain + ", when: {op: x, ip: 10.0.0.0/8}":          "when none -> op: x, ip",
		plain + ", group: g":                               "group none -> g",
		plain + ", missing: deny":                          "missing pass -> deny",
		plain + ", cost: 2":                                "cost none -> 2",
		plain + ", max_cost: 3":                            "max_cost none -> 3",
		plain + ", store: local":                           "store shared -> local",
		plain + ", lease: auto":                            "lease none -> auto for 2s",
		plain + ", lease: {size: 3, ttl: 4s}, warn: 80%":   "warn never -> 80%, lease none -> 3 for 4s",
		plain + ", algorithm: sliding_log":                 "20/s burst 20 -> 20/s, algorithm token_bucket -> sliding_log",
	} {
		file := "version: 1\nplans:\n  p:\n    - {%s}\n"
		got := limit.Changes(parsed(t, fmt.Sprintf(file, plain)), parsed(t, fmt.Sprintf(file, after)))
		if len(got) != 1 || got[0] != "plan p: a "+want {
			t.Errorf("%s: %q, want %q", after, got, want)
		}
	}
	const two = "version: 1\nplans:\n  p:\n    - {id: wide, by: [tenant], rate: 20/s}\n    - {id: a, by: [tenant], when: {op: x}, rate: 2/s%s}\n"
	if got := limit.Changes(parsed(t, fmt.Sprintf(two, "")), parsed(t, fmt.Sprintf(two, ", replaces: [wide]"))); len(got) != 1 || got[0] != "plan p: a replaces none -> wide" {
		t.Errorf("replaces: %q", got)
	}
	const values = "version: 1\nplans:\n  p:\n    - {id: a, by: [tenant], when: {api_key: %s}, rate: 2/s}\n"
	if got := limit.Changes(parsed(t, fmt.Sprintf(values, "secret")), parsed(t, fmt.Sprintf(values, "other"))); len(got) != 1 || got[0] != "plan p: a when of other values" {
		t.Errorf("other values: %q", got)
	}
	const declared = "version: 1\ndimensions: {region: {values: [%s]}}\nplans:\n  p:\n    - {id: a, by: [tenant, region], rate: 2/s}\n"
	if got := limit.Changes(parsed(t, fmt.Sprintf(declared, "eu")), parsed(t, fmt.Sprintf(declared, "eu, us"))); len(got) != 1 || got[0] != "plan p: a other declared values or options" {
		t.Errorf("declared values: %q", got)
	}
}

// TestDifferences checks that each line is about one limit, those of plans and tenants that come or go
// included, and the bound.
func TestDifferences(t *testing.T) {
	before := parsed(t, strings.ReplaceAll(changedBefore, "old: []", "old: [{id: aged, by: [tenant], rate: 3/s}]"))
	after := parsed(t, changedAfter+"  new: {overrides: {tenant: {rate: 9/s}}}\n")
	paused := 0
	lines, more := limit.Differences(before, after, 100, func() { paused++ })
	got := map[string][]string{}
	overrides := 0
	for _, l := range lines {
		got[l.Limit] = append(got[l.Limit], l.Text)
		if l.Override {
			overrides++
		}
	}
	for id, want := range map[string][]string{
		"ip":   {"shared: ip 10/m burst 10 -> 20/m burst 20"},
		"gone": {"plan free: gone 1/s burst 1 is gone"},
		"come": {"plan free: come 2/s burst 2 is new"},
		"when": {"plan free: when when op: x -> op: y"},
		"aged": {"plan old: aged 3/s burst 3 is gone"},
		"tenant": {
			"plan free: tenant 100/s burst 100 -> 50/s burst 50", "tenant drops: tenant 200/s burst 200 -> 50/s burst 50", "tenant moves: tenant 7/s burst 7 is new",
			"tenant new: tenant 9/s burst 9 is new", "tenant overrides: tenant 200/s burst 200 -> 300/s burst 300",
		},
	} {
		if !slices.Equal(got[id], want) {
			t.Errorf("%s: %q, want %q", id, got[id], want)
		}
	}
	if overrides != 4 || len(got) != 10 || more != 0 || lines[len(lines)-1].Override == lines[0].Override {
		t.Errorf("%d lines are of overrides, %d limits differ, %d lines are left out: %v", overrides, len(got), more, lines)
	}
	if few, left := limit.Differences(before, after, 2, nil); len(few) != 2 || left != len(lines)-2 {
		t.Errorf("%d lines and %d more, of %d", len(few), left, len(lines))
	}
	if back, _ := limit.Differences(after, after, 2, nil); len(back) > 0 {
		t.Errorf("a set differs from itself: %v", back)
	}
	crowd := changedBefore
	for i := range 1000 {
		crowd += fmt.Sprintf("  t%d: {overrides: {tenant: {rate: 7/s}}}\n", i)
	}
	if _, more := limit.Differences(before, parsed(t, crowd), 10, func() { paused++ }); more < 990 || paused < 15 {
		t.Errorf("%d lines are left out, after %d pauses", more, paused)
	}
}

// TestWarnPlaces checks the warnings of a limit that takes the place of another one for some of the
// requests of its buckets, and of one that allows less than it seems, and what silences them.
func TestWarnPlaces(t *testing.T) {
	const login = "version: 1\nshared:\n  - {id: ip, by: [ip], rate: 1000/m, on_error: open}\n  - {id: login, by: [ip], when: {op: login}, rate: 5/m, on_error: open%s}\n"
	const user = "version: 1\ndefault_plan: p\nplans:\n  p:\n    - {id: op, by: [tenant, op], rate: 9/s, on_error: open}\n    - {id: pay, by: [tenant, op], when: {op: \"pay*\"%s}, rate: 1/s, on_error: open}\n"
	for _, row := range []struct {
		file string
		want string // the limit that is replaced; empty for no warning
	}{
		{fmt.Sprintf(login, ""), "ip"},
		{fmt.Sprintf(login, ", mode: shadow"), ""},
		{fmt.Sprintf(login, ", mode: off"), ""},
		{strings.ReplaceAll(fmt.Sprintf(login, ""), "on_error", "mode: shadow, on_error"), "ip"},
		{fmt.Sprintf(login, ", group: login"), ""},
		{fmt.Sprintf(login, ", replaces: [ip]"), ""},
		{fmt.Sprintf(user, ""), ""}, // every bucket of op is of one op
		{fmt.Sprintf(user, ", region: eu"), "op"},
	} {
		_, warnings, err := config.ParseLimits("limits.yaml", []byte(row.file), limit.CompileOptions{})
		if err != nil {
			t.Fatalf("%s: %v", row.file, err)
		}
		found := ""
		for _, w := range warnings {
			if strings.Contains(w.Text, "takes the place of") {
				found += w.Text
			}
		}
		if (row.want == "") != (found == "") || !strings.Contains(found, row.want) {
			t.Errorf("%s\nwarns %q, want one of %q", row.file, found, row.want)
		}
	}
	const office = "version: 1\nshared:\n  - {id: login, by: [ip], when: {op: login}, rate: 5/m, on_error: open%s}\n  - {id: office, by: [ip], when: {ip: 198.51.100.0/24}, action: allow}\n%s"
	for _, row := range []struct{ group, more, want string }{
		{"", "", `"office" does not allow what "login" counts, which is more specific`},
		{", group: login", "", `"office" does not allow what "login" counts, which is of another group`},
		{", mode: shadow", "", ""},
		{"", "  - {id: both, by: [ip], when: {ip: 198.51.100.0/24, op: login}, action: allow}\n", ""},
		{", group: login", "  - {id: both, by: [ip], group: login, when: {ip: 198.51.100.0/24, op: login}, action: allow}\n", ""},
		{", group: login", "  - {id: both, by: [ip], group: login, when: {ip: 198.51.100.7, op: login}, action: allow}\n", "does not allow"},
	} {
		_, warnings, err := config.ParseLimits("limits.yaml", fmt.Appendf(nil, office, row.group, row.more), limit.CompileOptions{})
		if err != nil {
			t.Fatalf("%v: %v", row, err)
		}
		found := ""
		for _, w := range warnings {
			if w.Field == "action" {
				found += w.Text
			}
		}
		if (row.want == "") != (found == "") || !strings.Contains(found, row.want) {
			t.Errorf("%v warns %q", row, found)
		}
	}
	for _, row := range []struct{ replaces, want string }{
		{"nope", `there is no shared limit "nope"`},
		{"login", "a shared limit replaces those of its own by and group alone"},
	} {
		_, _, err := config.ParseLimits("limits.yaml", fmt.Appendf(nil, login, ", replaces: ["+row.replaces+"]"), limit.CompileOptions{})
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("replaces %s: %v, want %s", row.replaces, err, row.want)
		}
	}
}

// TestChangesRenamed: a limit that only has another id is called so, each once, and a limit of which more differs is gone.
func TestChangesRenamed(t *testing.T) {
	const head = "version: 1\ndefault_plan: p\nplans:\n  p:\n"
	before := parse(t, head+`    - {id: a, by: [tenant], rate: 1/s}
    - {id: b, by: [tenant, op], rate: 2/s, mode: shadow}
    - {id: c, by: [tenant, user], rate: 3/s}
    - {id: d, by: [tenant, key], action: deny, when: {key: x}}
`)
	after := parse(t, head+`    - {id: a2, by: [tenant], rate: 1/s}
    - {id: b2, by: [tenant, op], rate: 2/s, mode: shadow}
    - {id: c2, by: [tenant, user], rate: 4/s}
    - {id: d2, by: [tenant, key], action: deny, when: {key: x}}
`)
	want := []string{
		"plan p: a is called a2 now: its counters begin anew",
		"plan p: b is called b2 now: its counters begin anew",
		"plan p: c 3/s burst 3 is gone",
		"plan p: d deny is gone",
		"plan p: c2 4/s burst 4 is new",
		"plan p: d2 deny is new",
	}
	if got := limit.Changes(before, after); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	want = []string{"plan p: a is called a2 now: its counters begin anew", "plan p: c 3/s burst 3 -> none", "plan p: d deny -> none"}
	if got := limit.Loosened(before, after, nil); !slices.Equal(got, want) {
		t.Errorf("loosened: %q, want %q", got, want)
	}
}

// TestLoosenedRenamed: a limit of another id whose place a new one takes is listed as gone, and not where one took it before.
func TestLoosenedRenamed(t *testing.T) {
	const head = "version: 1\ndefault_plan: p\nplans:\n  p:\n"
	for _, row := range []struct{ before, after, want string }{
		{"- {id: a, by: [tenant], rate: 10/s}", "- {id: b, by: [tenant], rate: 10/s}\n    - {id: c, by: [tenant, op], rate: 1000/s, replaces: [b]}", "plan p: a 10/s burst 10 -> none"},
		{"- {id: a, by: [tenant], rate: 10/s}", "- {id: b, by: [tenant], rate: 10/s}\n    - {id: c, by: [tenant], when: {op: x}, rate: 1000/s}", "plan p: a 10/s burst 10 -> none"},
		{"- {id: a, by: [tenant], rate: 10/s}\n    - {id: c, by: [tenant], when: {op: x}, rate: 1000/s}", "- {id: b, by: [tenant], rate: 10/s}\n    - {id: c, by: [tenant], when: {op: x}, rate: 1000/s}", "plan p: a is called b now: its counters begin anew"},
		{"- {id: a, by: [tenant], rate: 10/s, mode: off}", "- {id: b, by: [tenant], rate: 10/s, mode: off}", ""},
	} {
		got := limit.Loosened(parse(t, head+"    "+row.before+"\n"), parse(t, head+"    "+row.after+"\n"), nil)
		if strings.Join(got, "; ") != row.want {
			t.Errorf("%s -> %s: %q, want %q", row.before, row.after, got, row.want)
		}
	}
}

// TestChangesCounted: the lines beyond most are counted as they would be listed.
func TestChangesCounted(t *testing.T) {
	file := func(id string) string {
		var text strings.Builder
		text.WriteString("version: 1\ndefault_plan: p0\nplans:\n")
		for plan := range 10 {
			fmt.Fprintf(&text, "  p%d:\n", plan)
			for i := range 5 {
				fmt.Fprintf(&text, "    - {id: %s%d, by: [tenant], group: g%d, rate: %d/s}\n", id, i, i, i+1)
			}
		}
		return text.String()
	}
	before, after := parse(t, file("a")), parse(t, file("b"))
	for _, most := range []int{0, 10, 49, 50, 60} {
		if lines, more := limit.Differences(before, after, most, nil); len(lines) != min(most, 50) || more != 50-len(lines) {
			t.Errorf("of at most %d there are %d lines and %d more", most, len(lines), more)
		}
	}
	if lines := limit.Changes(before, after); lines[len(lines)-1] != "and 30 more" {
		t.Errorf("the last line is %s", lines[len(lines)-1])
	}
}

// BenchmarkLoosenedRenamed measures tenants that move between plans whose limits have other ids.
func BenchmarkLoosenedRenamed(b *testing.B) {
	file := func(plan string) string {
		var text strings.Builder
		text.WriteString("version: 1\nmax_levels: 64\ndefault_plan: a\nplans:\n")
		for _, p := range []string{"a", "b"} {
			fmt.Fprintf(&text, "  %s:\n", p)
			for i := range 60 {
				fmt.Fprintf(&text, "    - {id: %s%d, by: [tenant], group: g%d, rate: %d/s}\n", p, i, i, i+1)
			}
		}
		text.WriteString("tenants:\n")
		for i := range 100 {
			fmt.Fprintf(&text, "  t%d: {plan: %s}\n", i, plan)
		}
		return text.String()
	}
	before, after := parse(b, file("a")), parse(b, file("b"))
	for b.Loop() {
		if len(limit.Loosened(before, after, nil)) == 0 {
			b.Fatal("nothing is loosened")
		}
	}
}
