package config

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// page returns docs/limits.md.
func page(tb testing.TB) string {
	tb.Helper()
	content, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		tb.Fatal(err)
	}
	return string(content)
}

// TestLimitsDocsExamples compiles every example of docs/limits.md.
func TestLimitsDocsExamples(t *testing.T) {
	found := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(page(t), -1)
	if len(found) < 7 {
		t.Fatalf("found %d examples", len(found))
	}
	for _, example := range found {
		head := "version: 1\ndefault_plan: free\n"
		if !strings.Contains(example[1], "plans:") {
			head = "version: 1\n"
		}
		if _, _, err := ParseLimits("limits.md", []byte(head+example[1]), strictOptions); err != nil {
			t.Errorf("%s\n%s", example[1], err)
		}
	}
}

// TestLimitsDocsKeys: docs/limits.md has a row for each key of a limit, and the defaults
// in it that are given in the file's syntax are right.
func TestLimitsDocsKeys(t *testing.T) {
	_, table, _ := strings.Cut(page(t), "\n## One limit\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]*) \\|").FindAllStringSubmatch(table, -1) {
		rows[row[1]] = row[2]
	}
	keys := limitFields
	for key := range keys {
		if rows[key] == "" {
			t.Errorf("no row, or no default, for %s", key)
		}
	}
	for key, text := range rows {
		if keys[key] == nil {
			t.Errorf("there is no key %s", key)
		}
		word, isWord := strings.CutPrefix(text, "`")
		if !isWord {
			continue
		}
		word = strings.TrimSuffix(word, "`")
		if got, want := oneLimit(t, key+": "+word), oneLimit(t, ""); got != want {
			t.Errorf("%s: %s is not the default: %+v, want %+v", key, word, got, want)
		}
	}
}

// words are the compiled values of a limit.
type words struct {
	mode      limit.Mode
	onError   limit.OnError
	missing   limit.Missing
	store     limit.Placement
	algorithm bucket.Algorithm
}

// oneLimit compiles a limit with additional keys.
func oneLimit(tb testing.TB, more string) words {
	tb.Helper()
	set, _, err := ParseLimits("limits.yaml", []byte("{version: 1, plans: {p: [{id: a, by: [tenant], rate: 1/s, "+more+"}]}}"), strictOptions)
	if err != nil {
		tb.Fatal(err)
	}
	l := set.LimitByID("a")
	return words{l.Mode, l.OnError, l.Missing, l.Store, l.Params.Algorithm}
}
