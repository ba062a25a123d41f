//go:build long

package integration

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

const (
	rulesPath = "../deploy/prometheus/limitgate-rules.yaml"
	// recordedPath is the unit test for promtool that a recording becomes.
	recordedPath = "../.cache/recorded-outage.yaml"
	// recordedJob and recordedInstance are labels that Prometheus adds to the series of a proxy.
	recordedJob, recordedInstance = "limitgate", "proxy"
)

// alertRules are the rules for Prometheus, as they are shipped.
type alertRules struct {
	Groups []struct {
		Name  string      `yaml:"name"`
		Rules []alertRule `yaml:"rules"`
	} `yaml:"groups"`
}

// alertRule is an alert, or without a name a rule that records.
type alertRule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func readRules(t *testing.T) *alertRules {
	t.Helper()
	text, err := os.ReadFile(rulesPath)
	if err != nil {
		t.Fatal(err)
	}
	var rules alertRules
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	return &rules
}

// all returns the rules of all groups.
func (a *alertRules) all() (all []alertRule) {
	for _, g := range a.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// alert returns the rule of an alert.
func (a *alertRules) alert(t *testing.T, name string) alertRule {
	t.Helper()
	all := a.all()
	i := slices.IndexFunc(all, func(r alertRule) bool { return r.Alert == name })
	if i < 0 {
		t.Fatalf("%s has no alert %s", rulesPath, name)
	}
	return all[i]
}

// metrics returns the names of the series that the rules read.
func (a *alertRules) metrics() map[string]bool {
	names := map[string]bool{}
	for _, r := range a.all() {
		for _, name := range regexp.MustCompile(`\blimitgate_\w+`).FindAllString(r.Expr, -1) {
			names[name] = true
		}
	}
	return names
}

// expectation is that an alert fires in one second, or with nil labels does not.
type expectation struct {
	second int
	rule   alertRule
	labels map[string]string // beside its job and severity
}

// forPromtool returns an expectation in the format of promtool.
func (e *expectation) forPromtool() map[string]any {
	alerts := []any{}
	if e.labels != nil {
		labels := maps.Clone(e.labels)
		labels["job"] = recordedJob
		maps.Copy(labels, e.rule.Labels)
		alerts = append(alerts, map[string]any{"exp_labels": labels, "exp_annotations": e.rule.Annotations})
	}
	return map[string]any{"eval_time": fmt.Sprint(e.second, "s"), "alertname": e.rule.Alert, "exp_alerts": alerts}
}

// inputSeries returns the recorded series that the rules read in the format of promtool.
func (r *recording) inputSeries(read map[string]bool) (all []map[string]string) {
	names := map[string]bool{}
	for _, s := range r.seconds {
		for series := range s.series {
			if metric, _, _ := strings.Cut(series, "{"); read[metric] {
				names[series] = true
			}
		}
	}
	for _, series := range slices.Sorted(maps.Keys(names)) {
		metric, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		if labels != "" {
			labels = "," + labels
		}
		all = append(all, map[string]string{
			"series": fmt.Sprintf("%s{job=%q,instance=%q%s}", metric, recordedJob, recordedInstance, labels),
			"values": strings.Join(r.values(series), " "),
		})
	}
	return all
}

// values returns the values of a series in the notation of promtool. One that a scrape does not have
// any more ends, as it does in Prometheus. Timestamps are those of promtool, whose clock begins at 0.
func (r *recording) values(series string) []string {
	var values []string
	began, offset := false, 0.0
	if metric, _, _ := strings.Cut(series, "{"); strings.HasSuffix(metric, "_timestamp_seconds") {
		offset = float64(r.began.UnixMilli()) / 1000
	}
	for _, s := range r.seconds {
		value, there := s.series[series]
		switch {
		case there:
			values = append(values, strconv.FormatFloat(value-offset, 'f', -1, 64))
		case s.series == nil || !began:
			values = append(values, "_")
		default:
			values = append(values, "stale")
		}
		began = began || there
	}
	return values
}

// checkAlerts writes the recording as a unit test, and makes promtool compare the alerts that it
// raises with the expected ones.
func (r *recording) checkAlerts(t *testing.T, rules *alertRules, expected []expectation) {
	t.Helper()
	order, tests := []string{}, []any{}
	for _, g := range rules.Groups {
		order = append(order, g.Name)
	}
	for _, e := range expected {
		tests = append(tests, e.forPromtool())
	}
	fromFile, err := filepath.Rel(filepath.Dir(recordedPath), rulesPath)
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(map[string]any{
		"rule_files": []string{fromFile}, "evaluation_interval": "1s", "group_eval_order": order,
		"tests": []any{map[string]any{"interval": "1s", "input_series": r.inputSeries(rules.metrics()), "alert_rule_test": tests}},
	})
	if err := cmp.Or(err, os.MkdirAll(filepath.Dir(recordedPath), 0o755), os.WriteFile(recordedPath, text, 0o644)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	output, err := exec.CommandContext(ctx, cmp.Or(os.Getenv("LIMITGATE_PROMTOOL"), "promtool"), "test", "rules", recordedPath).CombinedOutput()
	if err != nil {
		t.Errorf("promtool test rules %s: %v\n%s", recordedPath, err, output)
	}
}
