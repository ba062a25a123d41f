package drill

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/drills.md")

// read returns a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestPage checks that docs/drills.md has the drills.
func TestPage(t *testing.T) {
	const path, begin, end = "docs/drills.md", "<!-- Written by `go test ./internal/drill -update` -->\n", "<!-- end -->"
	before, rest, found := strings.Cut(read(t, path), begin)
	table, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the drills", path)
	}
	if *update {
		if err := os.WriteFile("../../"+path, []byte(before+begin+Markdown()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != Markdown() {
		t.Errorf("%s has other drills: run go test ./internal/drill -update", path)
	}
}

// logs are the files that log the lines of signs.
var logs = []string{
	"cluster/node.go", "internal/proxy/store.go", "internal/proxy/limits_source.go", "internal/proxy/rollout_watch.go", "internal/proxy/cell.go",
	"internal/redisauth/secret_read.go", "controlplane/cells.go", "controlplane/admission.go",
}

// TestNames checks that the metrics, log lines, alerts, settings and pages of the drills exist.
func TestNames(t *testing.T) {
	var code strings.Builder
	for _, path := range logs {
		code.WriteString(read(t, path))
	}
	metrics, alerts, settings := read(t, "docs/metrics.md"), read(t, "docs/alerts.md"), read(t, "config/settings_table.go")
	named := regexp.MustCompile(`limitgate_[a-z_]+|Limitgate[A-Z]\w+`)
	for _, d := range All() {
		for _, s := range d.Signs {
			if s.In == InLog && !strings.Contains(code.String(), `"`+s.Name) {
				t.Errorf("%s: no log has the line %q", d.Name, s.Name)
			}
			names := named.FindAllString(s.Name+" "+s.Means, -1)
			if (s.In == InMetrics || s.In == InAlerts) && len(names) == 0 {
				t.Errorf("%s: %q has no name", d.Name, s.Name)
			}
			for _, name := range names {
				if !strings.Contains(metrics, "`"+name+"`") && !strings.Contains(alerts, "`"+name+"`") {
					t.Errorf("%s: there is no %s", d.Name, name)
				}
			}
		}
		for _, tm := range d.Times {
			if name, isFlag := strings.CutPrefix(tm.From, "--"); !isFlag {
				read(t, "docs/"+tm.From)
			} else if dotted := strings.Replace(name, "-", ".", 1); !strings.Contains(settings, `"`+strings.ReplaceAll(name, "-", "_")+`"`) && !strings.Contains(settings, `"`+dotted+`"`) {
				t.Errorf("%s: there is no setting %s", d.Name, name)
			}
		}
		for _, p := range d.Pages {
			if !strings.Contains(read(t, "docs/"+p.Page), "# "+p.Heading+"\n") {
				t.Errorf("%s: docs/%s has no heading %q", d.Name, p.Page, p.Heading)
			}
		}
	}
}

// TestText checks that the text of each drill has all of it, in lines of a terminal.
func TestText(t *testing.T) {
	for _, d := range All() {
		var b strings.Builder
		if err := d.Write(&b); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(b.String()), " ")
		for _, s := range append(d.Steps, d.End...) {
			for _, part := range append(s.Commands, s.Text) {
				if !strings.Contains(text, part) {
					t.Errorf("%s lacks %q", d.Name, part)
				}
			}
		}
		for line := range strings.Lines(b.String()) {
			if len(line) > textWidth+1 && !strings.HasPrefix(line, "       ") {
				t.Errorf("%s: a line of %d bytes: %s", d.Name, len(line), line)
			}
		}
		if found, ok := Find(d.Name); !ok || found.Summary != d.Summary {
			t.Errorf("%s is not found", d.Name)
		}
	}
}
