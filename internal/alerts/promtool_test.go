package alerts

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// promtoolVariable names the variable with the path of promtool.
const promtoolVariable = "LIMITGATE_PROMTOOL"

// promtool runs promtool on files, and returns its error with what it prints.
func promtool(t *testing.T, folder string, args ...string) (string, error) {
	t.Helper()
	program, err := exec.LookPath(cmp.Or(os.Getenv(promtoolVariable), "promtool"))
	if err != nil {
		t.Fatalf("find promtool: run make test, or set %s to its path: %v", promtoolVariable, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = folder
	output, err := command.CombinedOutput()
	return string(output), err
}

// TestRules runs promtool on the rules and their tests.
func TestRules(t *testing.T) {
	folder := filepath.Join(root, "deploy", "prometheus")
	for _, args := range [][]string{{"check", "rules", rulesFile}, {"test", "rules", "limitgate-rules-test.yaml"}} {
		if output, err := promtool(t, folder, args...); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
		}
	}
}

// TestConfiguration: the configuration in the page of alerts is one of Prometheus.
func TestConfiguration(t *testing.T) {
	_, rest, _ := strings.Cut(read(t, "docs/alerts.md"), "```yaml\nglobal: ")
	config, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("the page has no configuration")
	}
	folder := t.TempDir()
	write(t, filepath.Join(folder, "prometheus.yaml"), "global: "+config)
	write(t, filepath.Join(folder, rulesFile), read(t, "deploy/prometheus/"+rulesFile))
	if output, err := promtool(t, folder, "check", "config", "prometheus.yaml"); err != nil {
		t.Errorf("promtool check config: %v\n%s", err, output)
	}
}

// TestRuleTestsFail checks that the tests of the rules report an alert that never fires, and
// one that always does.
func TestRuleTestsFail(t *testing.T) {
	for name, change := range map[string][2]string{
		"never":  {"limitgate:backstop:ratio_rate5m > 0.05", "limitgate:backstop:ratio_rate5m > 1.05"},
		"always": {"limitgate:backstop:ratio_rate5m > 0.05", "limitgate:backstop:ratio_rate5m >= 0"},
	} {
		t.Run(name, func(t *testing.T) {
			rules := read(t, "deploy/prometheus/"+rulesFile)
			changed := strings.Replace(rules, "|-\n          "+change[0]+"\n", "|-\n          "+change[1]+"\n", 1)
			if changed == rules {
				t.Fatalf("the rules do not have %s", change[0])
			}
			folder := t.TempDir()
			write(t, filepath.Join(folder, rulesFile), changed)
			var tests unitTests
			if err := yaml.Unmarshal([]byte(read(t, "deploy/prometheus/limitgate-rules-test.yaml")), &tests); err != nil {
				t.Fatal(err)
			}
			var some []unitTest
			for _, one := range tests.Tests {
				if strings.HasPrefix(one.Name, "LimitgateBackstopDecides ") {
					some = append(some, one)
				}
			}
			tests.Tests = some
			text, err := yaml.Marshal(tests)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(folder, "tests.yaml"), string(text))
			output, err := promtool(t, folder, "test", "rules", "tests.yaml")
			if err == nil || !strings.Contains(output, "LimitgateBackstopDecides") {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}

// TestQueries checks that promtool understands the queries of the dashboard and of the SLOs.
func TestQueries(t *testing.T) {
	checked := group{Name: "queries"}
	for _, expr := range dashboardExpressions(t) {
		checked.Rules = append(checked.Rules, rule{Record: "limitgate:query", Expr: expr})
	}
	for _, s := range SLOs {
		checked.Rules = append(checked.Rules, rule{Record: "limitgate:query", Expr: s.inWindow("30d")})
	}
	text, err := yaml.Marshal(map[string][]group{"groups": {checked}})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write(t, filepath.Join(folder, "queries.yaml"), string(text))
	if output, err := promtool(t, folder, "check", "rules", "--lint=none", "queries.yaml"); err != nil {
		t.Errorf("promtool: %v\n%s", err, output)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
