package edge_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/edge"
	"github.com/limitgate/limitgate/limit"
)

var update = flag.Bool("update", false, "write the templates in testdata")

func compile(tb testing.TB, file string) *limit.Set {
	tb.Helper()
	set, err := compileDrawn(file)
	if err != nil {
		tb.Fatalf("%v\n%s", err, file)
	}
	return set
}

// compileDrawn compiles a file that may have mistakes.
func compileDrawn(file string) (*limit.Set, error) {
	set, _, err := config.ParseLimits("limits.yaml", []byte(file), limit.CompileOptions{})
	return set, err
}

// TestTemplates compares templates with those in testdata, which scripts/cfn_lint.sh checks.
func TestTemplates(t *testing.T) {
	const sample, all = "../../examples/limits.yaml", "testdata/limits.yaml"
	waf := edge.Options{Kind: edge.KindWAF, Scope: edge.ScopeCloudFront, Margin: edge.DefaultMargin}
	full := edge.Options{Kind: edge.KindWAF, Scope: edge.ScopeRegional, Margin: 1.5, APIKeyHeader: "X-Api-Key", ForwardedIPHeader: "True-Client-IP"}
	for name, row := range map[string]struct {
		limits string
		opts   edge.Options
	}{
		"waf.yaml":             {sample, waf},
		"waf_full.yaml":        {all, full},
		"cloudfront.yaml":      {sample, edge.Options{Kind: edge.KindCloudFront}},
		"cloudfront_xff.yaml":  {sample, edge.Options{Kind: edge.KindCloudFront, ForwardedIPHeader: "X-Forwarded-For"}},
		"usage_plans.yaml":     {sample, edge.Options{Kind: edge.KindUsagePlans}},
		"usage_plans_all.yaml": {all, edge.Options{Kind: edge.KindUsagePlans}},
	} {
		content, err := os.ReadFile(row.limits)
		if err != nil {
			t.Fatal(err)
		}
		set, _, err := config.ParseLimits(filepath.Base(row.limits), content, limit.CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		result, err := edge.Render(set, row.opts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, result.Template, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || !bytes.Equal(result.Template, want) {
			t.Errorf("%s differs (%v): run go test ./internal/edge -update and read the diff", path, err)
		}
		for _, w := range result.Warnings {
			if !strings.Contains(string(result.Template), "\n# "+w.Format(filepath.Base(row.limits))+"\n") {
				t.Errorf("%s has no comment %q", name, w.Text)
			}
		}
	}
}

// TestEveryLimitIsSaid checks that each limit of the samples is in a template or has a warning, and
// that a limit changes the templates that say it.
func TestEveryLimitIsSaid(t *testing.T) {
	content, err := os.ReadFile("../../examples/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		kind     edge.Kind
		old, new string
		differs  string
	}{
		{edge.KindWAF, "rate: 1000/m", "rate: 1100/m", "Resources.WebACL.Properties.Rules[limitgate-ip].Statement.RateBasedStatement.Limit"},
		{edge.KindWAF, "burst: 2000\n", "burst: 2100\n", "Resources.WebACL.Properties.Rules[limitgate-ip].Statement.RateBasedStatement.Limit"},
		{edge.KindWAF, "rate: 10/s\n      mode", "rate: 11/s\n      mode", ""}, // in shadow mode
		{edge.KindUsagePlans, "rate: 100/s", "rate: 101/s", "Resources.FreeUsagePlan.Properties.Throttle.RateLimit"},
		{edge.KindUsagePlans, "burst: 5000", "burst: 5001", "Resources.PartnerUsagePlan.Properties.Throttle.BurstLimit"},
		{edge.KindUsagePlans, "1000000/month", "1000001/month", "Resources.FreeUsagePlan.Properties.Quota.Limit"},
	} {
		opts := edge.Options{Kind: row.kind, Scope: edge.ScopeRegional, Margin: 2}
		before, err := edge.Render(compile(t, string(content)), opts)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(content), row.old, row.new, 1)
		after, err := edge.Render(compile(t, changed), opts)
		if err != nil || changed == string(content) {
			t.Fatalf("%q is not in the sample, %v", row.old, err)
		}
		lines, err := edge.Diff(before.Template, after.Template)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(lines, "\n"); row.differs == "" && got != "" || row.differs != "" && (len(lines) != 2 || !strings.HasPrefix(got, "- "+row.differs+": ")) {
			t.Errorf("%s: %s changes\n%s", row.kind, row.new, got)
		}
	}
}

// TestHostileNames checks that no name ends a comment or leaves its value.
func TestHostileNames(t *testing.T) {
	set := compile(t, `
version: 1
default_plan: p
plans:
  p: [{id: tenant, by: [tenant], rate: 10/s}]
  "x: {y}": [{id: tenant, by: [tenant], rate: 20/s}]
  "${AWS::Region}'\u2028\"": [{id: tenant, by: [tenant], rate: 30/s, mode: shadow}, {id: t2, by: [tenant], group: g, rate: 30/s}]
tenants:
  "a #Resources:": {overrides: {tenant: {rate: 90/s}}}
`)
	result, err := edge.Render(set, edge.Options{Kind: edge.KindUsagePlans})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := edge.Diff([]byte("Resources: {}"), result.Template)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(lines, "\n")
	for _, want := range []string{"XYUsagePlan.Properties.UsagePlanName: \"limitgate-x: {y}\"", "AWSRegionUsagePlan.Properties.UsagePlanName: "} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s:\n%s", want, all)
		}
	}
	for line := range strings.Lines(string(result.Template)) {
		if strings.ContainsAny(line, "\u0085\u2028") {
			t.Errorf("line %q", line)
		}
	}
}

// TestNothingToRender checks that a file of which nothing can be said is an error with its reasons.
func TestNothingToRender(t *testing.T) {
	set := compile(t, "version: 1\nshared: [{id: user, by: [user], rate: 10/s}]\n")
	for _, kind := range []edge.Kind{edge.KindWAF, edge.KindUsagePlans} {
		result, err := edge.Render(set, edge.Options{Kind: kind, Scope: edge.ScopeRegional, Margin: 2})
		if err == nil || result.Template != nil || len(result.Warnings) == 0 {
			t.Errorf("%s: %v, %v, %s", kind, err, result.Warnings, result.Template)
		}
	}
}

// TestHostilePlans checks that no name of a plan is one that CloudFormation would resolve, or that
// changes the direction of text.
func TestHostilePlans(t *testing.T) {
	set := compile(t, `
version: 1
default_plan: "{{resolve:secretsmanager:db}}"
plans:
  "{{resolve:secretsmanager:db}}": [{id: a, by: [tenant], rate: 10/s, algorithm: fixed_window}]
  "${AWS::StackName}": [{id: a, by: [tenant], rate: 10/s}]
  "\u202eevil": [{id: a, by: [tenant], rate: 10/s}]
`)
	result, err := edge.Render(set, edge.Options{Kind: edge.KindUsagePlans})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(result.Template)) {
		if strings.Contains(line, "\u202e") || !strings.HasPrefix(line, "#") && (strings.Contains(line, "{{") || strings.Contains(line, "${")) {
			t.Errorf("the template has the line %q", line)
		}
	}
}

// TestTemplateBounds checks that templates keep the bounds of CloudFormation and WAF, and have a warning of
// what they leave out.
func TestTemplateBounds(t *testing.T) {
	draw := func(head, row string, n int) string {
		var b strings.Builder
		b.WriteString(head)
		for i := range n {
			b.WriteString(strings.ReplaceAll(row, "%d", strconv.Itoa(i)))
		}
		return b.String()
	}
	const plan = "  p%d: [{id: a, by: [tenant], rate: 10/s}]\n"
	const shared = "version: 1\nshared:\n  - {id: ip, by: [ip], rate: 100/s}\n"
	for name, row := range map[string]struct {
		kind           edge.Kind
		limits, warned string
	}{
		"outputs":   {edge.KindUsagePlans, draw("version: 1\nplans:\n", plan, 250), "50 usage plans have no output: a template has at most 200"},
		"resources": {edge.KindUsagePlans, draw("version: 1\nplans:\n", plan, 510), "plan p99 has no usage plan: a template has at most 500 resources"},
		"routes":    {edge.KindWAF, draw(shared, "  - {id: r%d, by: [ip], when: {op: GET /r%d}, rate: 10/s}\n", 1000), "r999: rule ip: "},
	} {
		result, err := edge.Render(compile(t, row.limits), edge.Options{Kind: row.kind, Scope: edge.ScopeRegional, Margin: 2})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !slices.ContainsFunc(result.Warnings, func(w edge.Warning) bool { return strings.Contains(w.Text, row.warned) }) {
			t.Errorf("%s: there is no warning %q", name, row.warned)
		}
		var template struct{ Resources, Outputs map[string]any }
		if err := yaml.Unmarshal(result.Template, &template); err != nil || len(template.Resources) > 500 || len(template.Outputs) > 200 {
			t.Errorf("%s: %v, %d resources, %d outputs", name, err, len(template.Resources), len(template.Outputs))
		}
		if len(result.Template) > 300_000 {
			t.Errorf("%s: the template has %d bytes", name, len(result.Template))
		}
	}
}
