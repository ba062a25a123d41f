package alerts

import (
	"fmt"
	"maps"

	"go.yaml.in/yaml/v4"
)

// unitTests is a file of tests in the format of promtool.
type unitTests struct {
	RuleFiles          []string   `yaml:"rule_files"`
	EvaluationInterval string     `yaml:"evaluation_interval"`
	GroupEvalOrder     []string   `yaml:"group_eval_order"`
	Tests              []unitTest `yaml:"tests"`
}

type unitTest struct {
	Name     string        `yaml:"name"`
	Interval string        `yaml:"interval"`
	Input    []inputSeries `yaml:"input_series"`
	Alerts   []alertTest   `yaml:"alert_rule_test"`
}

type inputSeries struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type alertTest struct {
	EvalTime string     `yaml:"eval_time"`
	Name     string     `yaml:"alertname"`
	Expected []expected `yaml:"exp_alerts"`
}

type expected struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

// RuleTests returns the file of tests of the rules, of which rulesFile is the name.
func RuleTests(rulesFile string) ([]byte, error) {
	file := unitTests{RuleFiles: []string{rulesFile}, EvaluationInterval: "1m"}
	for _, g := range groups() {
		file.GroupEvalOrder = append(file.GroupEvalOrder, g.Name)
	}
	for _, a := range All() {
		for i, c := range a.Cases {
			file.Tests = append(file.Tests, c.unitTest(a, i))
		}
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("write tests of rules: %w", err)
	}
	return append([]byte("# Tests of limitgate-rules.yaml for promtool.\n# "+written+"\n"), text...), nil
}

// unitTest returns the test of a case of an alert.
func (c Case) unitTest(a Alert, number int) unitTest {
	t := unitTest{Name: fmt.Sprintf("%s %d", a.Name, number+1), Interval: "1m"}
	for _, s := range c.Series {
		t.Input = append(t.Input, inputSeries{s.Name, s.Values})
	}
	labels := maps.Clone(c.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels["severity"] = string(a.Severity)
	for _, at := range c.Fires {
		t.Alerts = append(t.Alerts, alertTest{at, a.Name, []expected{{labels, a.annotations()}}})
	}
	for _, at := range c.Quiet {
		t.Alerts = append(t.Alerts, alertTest{at, a.Name, []expected{}})
	}
	return t
}
