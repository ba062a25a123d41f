package alerts

import (
	"cmp"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the files that are rendered from the table")

const (
	root      = "../.."
	rulesFile = "limitgate-rules.yaml"
)

// rendered returns all files by their paths in the repository. Those of the documentation
// are pages with other text around.
func rendered(t *testing.T) map[string]string {
	t.Helper()
	text := func(content []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	files := map[string]string{
		"deploy/prometheus/" + rulesFile:              text(Rules()),
		"deploy/prometheus/limitgate-rules-test.yaml": text(RuleTests(rulesFile)),
		"deploy/grafana/limitgate.json":               text(Dashboard()),
		"deploy/cloudformation/proxy-alarms.yaml":     string(CloudFormation()),
	}
	for path, render := range map[string]func(string) (string, error){
		"docs/runbook.md": RunbookIndex, "docs/alerts.md": Overview, "docs/slo.md": SLOPage,
	} {
		page, err := render(read(t, path))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		files[path] = page
	}
	return files
}

// read returns a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestFiles compares the files with the table.
func TestFiles(t *testing.T) {
	for path, want := range rendered(t) {
		if *update {
			file := filepath.Join(root, filepath.FromSlash(path))
			if err := cmp.Or(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(want), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if read(t, path) != want {
			t.Errorf("%s differs from the table: run go test ./internal/alerts -update and read the diff", path)
		}
	}
}

// TestBetween checks that a page keeps the text around its table, and needs its markers.
func TestBetween(t *testing.T) {
	if got, err := between("a\n"+begin+"old\n"+end+"b\n", "new\n"); err != nil || got != "a\n"+begin+"new\n"+end+"b\n" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, page := range []string{"a\n", "a\n" + begin, end + begin} {
		if got, err := between(page, "new\n"); err == nil {
			t.Errorf("%q becomes %q", page, got)
		}
	}
}

// TestTable checks that each alert is complete, and that its tests see it fire and end.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range All() {
		if seen[a.Name] || !strings.HasPrefix(a.Name, "Limitgate") || a.Severity != Page && a.Severity != Ticket {
			t.Errorf("%s, %s: it is there twice, or its name or severity is wrong", a.Name, a.Severity)
		}
		seen[a.Name] = true
		for _, text := range []string{a.Summary, a.Meaning} {
			if !strings.HasSuffix(text, ".") || strings.ContainsAny(text, "|\n") || strings.Contains(text, "{{") {
				t.Errorf("%s: %q is not a sentence that fits a table and needs no template", a.Name, text)
			}
		}
		if !slices.ContainsFunc(a.Cases, Case.firesAndEnds) {
			t.Errorf("%s: no case sees it fire and end", a.Name)
		}
	}
}

// firesAndEnds reports whether an alert fires in a case, and is quiet at a later time.
func (c Case) firesAndEnds() bool {
	if len(c.Fires) == 0 || len(c.Quiet) == 0 {
		return false
	}
	last := func(times []string) (latest time.Duration) {
		for _, text := range times {
			at, err := time.ParseDuration(text)
			if err != nil {
				return -1
			}
			latest = max(latest, at)
		}
		return latest
	}
	return last(c.Fires) >= 0 && last(c.Quiet) > last(c.Fires)
}

// TestFiresAndEnds checks what TestTable asks of cases.
func TestFiresAndEnds(t *testing.T) {
	for _, test := range []struct {
		fires, quiet []string
		want         bool
	}{
		{[]string{"20m"}, []string{"9m", "30m"}, true},
		{[]string{"20m"}, []string{"9m"}, false},
		{[]string{"20m"}, nil, false},
		{nil, []string{"9m"}, false},
		{[]string{"20"}, []string{"30m"}, false},
	} {
		if got := (Case{Fires: test.fires, Quiet: test.quiet}).firesAndEnds(); got != test.want {
			t.Errorf("%v and quiet at %v: %v", test.fires, test.quiet, got)
		}
	}
}

// TestSections checks that the runbook has the section of each alert, with its steps, and
// each section that its index names.
func TestSections(t *testing.T) {
	page := read(t, "docs/runbook.md")
	sections := map[string]string{}
	for _, text := range strings.Split(page, "\n## ")[1:] {
		heading, body, _ := strings.Cut(text, "\n")
		sections[heading] = body
	}
	wanted := map[string]string{}
	for _, a := range All() {
		wanted[a.Section] = a.Name
	}
	index, _, _ := strings.Cut(page, end)
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| \\w+ \\| \\[(.+)\\]\\(").FindAllStringSubmatch(index, -1)
	if len(rows) != len(All()) {
		t.Errorf("the index has %d alerts of %d", len(rows), len(All()))
	}
	for _, row := range rows {
		wanted[row[2]] = row[1]
	}
	for section, alert := range wanted {
		body, ok := sections[section]
		if !ok {
			t.Errorf("docs/runbook.md has no section %q, for %s", section, alert)
			continue
		}
		for _, part := range []string{"- **Metrics**: ", "- **Callers**", "- **Now**: ", "- **Later**: "} {
			if !strings.Contains(body, part) {
				t.Errorf("section %q of docs/runbook.md, for %s, lacks %q", section, alert, part)
			}
		}
	}
}

// TestTwins checks that the twins that another template has are there.
func TestTwins(t *testing.T) {
	template := read(t, "deploy/cloudformation/control-plane.yaml")
	for _, a := range All() {
		if a.Twin != nil && a.Twin.Elsewhere != strings.Contains(template, "\n  "+a.Twin.Alarm+":\n") {
			t.Errorf("%s: control-plane.yaml should have %s: %v", a.Name, a.Twin.Alarm, a.Twin.Elsewhere)
		}
	}
}

// TestTwinsKnowEMF checks that the section EMF of docs/metrics.md has the metrics of every alarm.
func TestTwinsKnowEMF(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "docs/metrics.md"), "\n## EMF\n")
	for _, a := range All() {
		if a.Twin == nil {
			continue
		}
		for _, m := range a.Twin.Metrics {
			if !strings.Contains(section, "`"+m.Name+"`") {
				t.Errorf("%s: proxies write no metric %s", a.Name, m.Name)
			}
		}
	}
}

// unknownMetrics returns the metrics of Limitgate in an expression that docs/metrics.md does not
// have, and the recorded names that no rule records.
func unknownMetrics(expr string, types map[string]string) (unknown []string) {
	recording := map[string]bool{}
	for _, g := range groups() {
		for _, r := range g.Rules {
			recording[r.Record] = true
		}
	}
	for _, name := range regexp.MustCompile(`\blimitgate[_:][\w:]+`).FindAllString(expr, -1) {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if types[name] == "" && types[base] != "histogram" && !recording[name] {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// TestMetrics checks that docs/metrics.md has the metrics of each rule and each panel.
func TestMetrics(t *testing.T) {
	types := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\|").FindAllStringSubmatch(read(t, "docs/metrics.md"), -1) {
		types[m[1]] = m[2]
	}
	for name, expr := range expressions(t) {
		if unknown := unknownMetrics(expr, types); unknown != nil {
			t.Errorf("%s: docs/metrics.md has no %v", name, unknown)
		}
	}
	for expr, want := range map[string]string{
		"rate(limitgate_decisions_total[5m])":  "",
		"limitgate_decision_seconds_bucket":    "",
		"limitgate_decisions_total_bucket":     "limitgate_decisions_total_bucket",
		"limitgate_nothing > limitgate:shares": "limitgate_nothing limitgate:shares",
		"limitgate:backstop:ratio_rate5m > 0":  "",
	} {
		if got := strings.Join(unknownMetrics(expr, types), " "); got != want {
			t.Errorf("of %s unknown is %q, want %q", expr, got, want)
		}
	}
}

// expressions returns the expressions of all rules and of the dashboard, by a name.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, g := range groups() {
		for _, r := range g.Rules {
			all[g.Name+"/"+r.Record+r.Alert+r.Labels["slo"]] = r.Expr
		}
	}
	maps.Copy(all, dashboardExpressions(t))
	return all
}
