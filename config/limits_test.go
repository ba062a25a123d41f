package config

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/examples"
	"github.com/limitgate/limitgate/limit"
)

var update = flag.Bool("update", false, "write the expected messages of the limits files in testdata")

// strictOptions are the options for checking the files in testdata.
var strictOptions = limit.CompileOptions{IPMaxTTL: 3600e6}

// TestLimitsMistakes compares every message about the files in testdata/limits with the
// .want file beside it: errors, then warnings.
func TestLimitsMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/limits/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Base(file)
			_, warnings, err := ParseLimits(name, content, strictOptions)
			var got strings.Builder
			if err != nil {
				got.WriteString(err.Error() + "\n")
			}
			for _, w := range warnings {
				kind := "warning"
				if w.Note {
					kind = "note"
				}
				got.WriteString(w.Format(name) + " (" + kind + ")\n")
			}
			want := strings.TrimSuffix(file, ".yaml") + ".want"
			if *update {
				if err := os.WriteFile(want, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			expected, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(expected) {
				t.Errorf("got:\n%s\nwant:\n%s", got.String(), expected)
			}
		})
	}
}

// TestSampleIsGood checks the sample that serve uses without a limits file by the strict
// rules.
func TestSampleIsGood(t *testing.T) {
	opts := strictOptions
	opts.Strict, opts.IPSecret = true, true
	set, _, err := ParseLimits("limits.yaml", examples.Limits, opts)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.IDs) != 7 {
		t.Errorf("the sample has %d ids, want 7: %v", len(set.IDs), set.IDs)
	}
}

// TestJSON: limits in JSON are parsed, and checked, like YAML.
func TestJSON(t *testing.T) {
	const good = `{"version": 1, "default_plan": "p", "plans": {"p": [{"id": "a", "by": ["tenant"], "rate": "1/s"}]}}`
	set, _, err := ParseLimits("limits.json", []byte(good), strictOptions)
	if err != nil {
		t.Fatal(err)
	}
	if l := set.LimitByID("a"); l == nil || l.Params.Capacity != 1 {
		t.Errorf("got %+v", l)
	}
	_, _, err = ParseLimits("limits.json", []byte(strings.Replace(good, "rate", "rat", 1)), strictOptions)
	if err == nil || !strings.Contains(err.Error(), "limits.json:1: plans.p[0].rat: unknown key; did you mean rate?") {
		t.Errorf("got %v", err)
	}
}

// TestAliases: any value may be repeated by an alias.
func TestAliases(t *testing.T) {
	const file = `version: 1
plans:
  p:
    - {id: a, by: &by [tenant], rate: &rate 5/s, lease: &lease {size: 3}}
    - {id: b, by: [tenant, op], rate: *rate, lease: *lease, when: &when {op: x}}
    - {id: c, by: *by, rate: *rate, group: g, when: *when}
`
	set, _, err := ParseLimits("limits.yaml", []byte(file), strictOptions)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := set.LimitByID("a"), set.LimitByID("b"), set.LimitByID("c")
	if b.Rate != a.Rate || b.Lease != a.Lease || a.Lease == (limit.Lease{}) || !slices.Equal(c.Level(), a.Level()) || !slices.Equal(c.When(), b.When()) {
		t.Errorf("%+v\n%+v\n%+v", a, b, c)
	}
}

// FuzzParseLimits feeds anything to the parser: it must not panic, and every problem must
// have a line.
func FuzzParseLimits(f *testing.F) {
	f.Add(examples.Limits)
	for _, seed := range []string{"", "version: 1", "a: &a [*a]", "version: 1\nplans: {p: [{id: a, by: [tenant], rate: 1/s}]}", "- 1", "? [a]\n: b", "\x00", "<<: {a: 1}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		set, warnings, err := ParseLimits("f", content, strictOptions)
		if (set == nil) == (err == nil) {
			t.Fatalf("set %v, error %v", set, err)
		}
		for _, w := range warnings {
			if w.Line < 1 {
				t.Errorf("a warning without a line: %+v", w)
			}
		}
	})
}

// TestStrictInOneLine: the strict rules list the limits without on_error in one error, and no override of them.
func TestStrictInOneLine(t *testing.T) {
	for _, row := range []struct{ limits, want string }{
		{"{id: a, by: [tenant], rate: 1/s}", "f:1: on_error: strict: say open or closed"},
		{"{id: a, by: [tenant], rate: 1/s}, {id: b, by: [tenant], group: b, rate: 1/s}", `f:1: on_error: strict: say open or closed in each of 2 limits: "a" (line 1), "b" (line 1)`},
		{"{id: a, by: [tenant], rate: 1/s}, {by: [tenant], rate: 1/s}", `"a" (line 1), one without an id (line 1)`},
		{"{id: a, by: [tenant], rate: fast}", "\nf:1: on_error: strict: say open or closed"},
		{"{include: l}, {id: b, by: [tenant], group: b, rate: 1/s}]}, lists: {l: [{id: a, by: [tenant], rate: 1/s}", `in each of 2 limits: "a" (line 1), "b" (line 1)`},
		{"{include: l}], q: [{include: l}]}, lists: {l: [{id: a, by: [tenant], rate: 1/s}", "f:1: on_error: strict: say open or closed"},
	} {
		file := "{version: 1, default_plan: p, plans: {p: [" + row.limits + "]}, tenants: {t: {overrides: {a: {rate: 2/s}}}}}"
		_, warnings, err := ParseLimits("f", []byte(file), limit.CompileOptions{Strict: true})
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Count(err.Error(), "on_error") != 1 || len(warnings) != 0 {
			t.Errorf("%s: %v, %v", row.limits, err, warnings)
		}
	}
}
