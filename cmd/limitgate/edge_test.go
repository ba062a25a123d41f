package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEdgeCheck checks that a template is the one deployed until a limit changes.
func TestEdgeCheck(t *testing.T) {
	const sample = "../../examples/limits.yaml"
	folder := t.TempDir()
	for _, flags := range [][]string{
		{"--kind", "waf", "--scope", "REGIONAL", "--api-key-header", "X-Api-Key"},
		{"--kind", "usage-plans"},
		{"--kind", "cloudfront"},
	} {
		render := append([]string{"edge", "render", sample}, flags...)
		out, errs, code := command(render...)
		if code != exitOK || !strings.Contains(out, "\nResources:\n") || !strings.Contains(errs, sample+":") {
			t.Fatalf("%v: exit %d, %s\n%s", flags, code, errs, out)
		}
		deployed := filepath.Join(folder, "deployed.yaml")
		if err := os.WriteFile(deployed, []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
		check := append(render, "--check", deployed)
		if out, errs, code := command(check...); code != exitOK || out != "" {
			t.Errorf("%v: exit %d, %q, %s", flags, code, out, errs)
		}
		content, err := os.ReadFile(sample)
		if err != nil {
			t.Fatal(err)
		}
		changed := filepath.Join(folder, "limits.yaml")
		text := strings.NewReplacer("rate: 1000/", "rate: 1001/", "rate: 100/s", "rate: 101/s").Replace(string(content))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		check[2] = changed
		out, _, code = command(check...)
		if differs := flags[1] != "cloudfront"; differs != (code == exitDenied) || differs != strings.Contains(out, "\n+ Resources.") {
			t.Errorf("%v: exit %d\n%s", flags, code, out)
		}
	}
}

// TestEdgeNothing checks that a file of which nothing can be rendered is an error, with the reasons.
func TestEdgeNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nshared: [{id: user, by: [user], rate: 10/s}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := command("edge", "render", "--kind", "waf", "--scope", "REGIONAL", file)
	if code != exitError || out != "" || !strings.Contains(errs, "user: it counts by user, which WAF does not know") || !strings.Contains(errs, "no limit of the file has a form there") {
		t.Errorf("exit %d, %q\n%s", code, out, errs)
	}
}

// TestEdgeEmpty checks that the error for a file without limits promises no lines above it.
func TestEdgeEmpty(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nshared: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "limitgate: render edge: the file has no limits to render: limitgate limits lint prints those that it has\n"
	for _, kind := range []string{"waf --scope REGIONAL", "usage-plans"} {
		args := append(strings.Fields("edge render --kind "+kind), file)
		if out, errs, code := command(args...); code != exitError || out != "" || errs != want {
			t.Errorf("%s: exit %d, %q\n%s", kind, code, out, errs)
		}
	}
}

// TestEdgeCase checks that a kind and a scope may be written in any case, and that the help has them as they
// are written elsewhere.
func TestEdgeCase(t *testing.T) {
	if out, errs, code := command("edge", "render", "--kind", "WAF", "--scope", "regional", "../../examples/limits.yaml"); code != exitOK || !strings.Contains(out, "\n      Scope: REGIONAL\n") {
		t.Errorf("exit %d, %s\n%s", code, errs, out)
	}
	if out, _, _ := command("edge", "--help"); !strings.Contains(out, "--kind waf|cloudfront|usage-plans ") {
		t.Error(out)
	}
}

// TestEdgeMistakes checks that each mistake of a user gets an error that says what would be right.
func TestEdgeMistakes(t *testing.T) {
	const sample = "../../examples/limits.yaml"
	noPlan, broken := filepath.Join(t.TempDir(), "no_plan.yaml"), filepath.Join(t.TempDir(), "broken.yaml")
	for path, content := range map[string]string{noPlan: "version: 1\ndefault_plan: gold\nplans: {free: []}\n", broken: "Resources: {}\na: ["} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"edge"}, "say render: limitgate edge render --kind waf limits.yaml"},
		{[]string{"edge", "rendr"}, "there is no command \"rendr\"; did you mean render?"},
		{[]string{"edge", "check", "waf.yaml"}, "check is a flag of render: limitgate edge render --kind waf --check deployed.yaml limits.yaml"},
		{[]string{"edge", "render", sample}, "--kind is needed: waf, cloudfront or usage-plans"},
		{[]string{"edge", "render", "--kind", "usage-plan", sample}, "there is no kind \"usage-plan\"; did you mean usage-plans?"},
		{[]string{"edge", "render", "--kind", "waf", sample}, "--scope is needed: CLOUDFRONT for a distribution, REGIONAL for a load balancer or an API"},
		{[]string{"edge", "render", "--kind", "waf", "--scope", "regonal", sample}, "there is no scope \"regonal\": say CLOUDFRONT or REGIONAL"},
		{[]string{"edge", "render", "--kind", "waf", "--scope", "REGIONAL", "--margin", "0.5", sample}, "below 1, the edge would deny what the limits admit"},
		{[]string{"edge", "render", "--kind", "waf", "--scope", "REGIONAL", "--margin", "NaN", sample}, "--margin is a number from 1 to 1000"},
		{[]string{"edge", "render", "--kind", "waf", "--scope", "REGIONAL", "--api-key-header", "X Key", sample}, "is not the name of a header: letters, digits, - and _, such as X-Api-Key"},
		{[]string{"edge", "render", "--kind", "cloudfront", "--forwarded-ip-header", "X-Real-IP", sample}, "CloudFront lets no function write X-Real-IP: choose another name, such as True-Client-IP"},
		{[]string{"edge", "render", "--kind", "usage-plans", "--margin", "3", sample}, "--margin goes with --kind waf alone"},
		{[]string{"edge", "render", "--kind", "usage-plans", "--forwarded-ip-header", "X-Ip", sample}, "a usage plan counts by key"},
		{[]string{"edge", "render", "--kind", "usage-plans"}, "one limits file is needed"},
		{[]string{"edge", "render", "--kind", "usage-plans", noPlan}, `no_plan.yaml:2: default_plan: there is no plan "gold"`},
		{[]string{"edge", "render", "--kind", "usage-plans", "--check", "-", "-"}, "standard input can be the limits file or the deployed template, not both"},
		{[]string{"edge", "render", "--kind", "usage-plans", "--check", sample, sample}, "it is not a template of CloudFormation: it has no Resources"},
		{[]string{"edge", "render", "--kind", "usage-plans", "--check", broken, sample}, "read deployed template: line 2: not readable as YAML: the [ is not closed: write ] behind the last value"},
		{[]string{"edge", "render", "--kind", "usage-plans", "--check", "nope.yaml", sample}, `open deployed template: there is no file "nope.yaml": --check FILE`},
	} {
		_, errs, code := command(row.args...)
		if slices.Contains(row.args, "--check") && strings.Count(errs, "\n") > 1 {
			t.Errorf("%s: remarks in front of an error: %s", row.args, errs)
		}
		if code == exitOK || !strings.Contains(errs, row.want) {
			t.Errorf("%s: exit %d, without %q:\n%s", row.args, code, row.want, errs)
		}
	}
}
