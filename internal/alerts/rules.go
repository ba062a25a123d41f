package alerts

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v4"
)

// group is a group of rules in the format of Prometheus.
type group struct {
	comment string
	Name    string `yaml:"name"`
	Rules   []rule `yaml:"rules"`
}

// rule is a recording rule or an alert.
type rule struct {
	Record      string            `yaml:"record,omitempty"`
	Alert       string            `yaml:"alert,omitempty"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

const (
	written = "Written by go test ./internal/alerts -update; do not change it by hand."
	// runbookURL is the address of the page with the steps for each alert.
	runbookURL = "https://github.com/limitgate/limitgate/blob/main/docs/runbook.md"

	enforced = `limitgate_decisions_total{mode="enforce"}`
)

// recorded are the rates and shares that alerts use.
var recorded = []rule{
	{Record: "limitgate:decisions:rate5m", Expr: `sum by (job) (rate(` + enforced + `[5m]))`},
	{Record: "limitgate:backstop:ratio_rate5m", Expr: shareOf(`source="backstop"`, "5m")},
	{Record: "limitgate:denied:ratio_rate5m", Expr: shareOf(`verdict="deny"`, "5m")},
	{Record: "limitgate:denied:ratio_rate1h", Expr: shareOf(`verdict="deny"`, "1h")},
	{Record: "limitgate:store_errors:ratio_rate5m", Expr: `sum by (job) (rate(limitgate_store_errors_total[5m])) / limitgate:decisions:rate5m`},
	{Record: "limitgate:lease_refreshes:rate5m", Expr: `sum by (job) (rate(limitgate_lease_refreshes_total[5m]))`},
	{Record: "limitgate:lease_decisions:rate5m", Expr: `sum by (job) (rate(limitgate_decisions_total{mode="enforce",source="lease"}[5m]))`},
}

// shareOf returns the share of decisions with a label. It is 0 before the first one, when
// there is no such series.
func shareOf(label, window string) string {
	all := fmt.Sprintf("sum by (job) (rate(%s[%s]))", enforced, window)
	return fmt.Sprintf("(sum by (job) (rate(limitgate_decisions_total{mode=\"enforce\",%s}[%s])) or 0 * %s)\n/ %s", label, window, all, all)
}

// groups returns all rules. Groups that record come first.
func groups() []group {
	burning := []rule{{Record: "limitgate:drifting", Expr: `max by (job) (limitgate_over_admission_ratio{quantile="1"}) > bool 1.05`}}
	for _, slo := range SLOs {
		for _, window := range windows {
			burning = append(burning, rule{
				Record: burnRate(window),
				Expr:   fmt.Sprintf("(%s)\n/ %s", slo.inWindow(window), number(slo.Budget)),
				Labels: map[string]string{"slo": slo.Name},
			})
		}
	}
	var alerts []rule
	for _, a := range All() {
		alerts = append(alerts, rule{
			Alert:       a.Name,
			Expr:        a.Expr,
			For:         a.For,
			Labels:      map[string]string{"severity": string(a.Severity)},
			Annotations: a.annotations(),
		})
	}
	return []group{
		{
			comment: `This is for you to fill in: above 0 while a service behind the limits is saturated, for
example by its latency or its errors. Record the same name with a label in a file of your
own, and leave this one as it is. LimitgateFailOpenInduced needs it.`,
			Name: "limitgate-upstream", Rules: []rule{{Record: "limitgate:upstream_saturated", Expr: "vector(0)"}},
		},
		{Name: "limitgate-shares", Rules: recorded},
		{comment: "How many times faster than allowed the error budgets burn, see docs/slo.md.", Name: "limitgate-slos", Rules: burning},
		{Name: "limitgate-alerts", Rules: alerts},
	}
}

// annotations returns the texts of an alert. They have no templates, so that the tests of
// the rules have the same texts.
func (a Alert) annotations() map[string]string {
	return map[string]string{
		"summary":     a.Summary,
		"description": a.Meaning,
		"runbook_url": runbookURL + "#" + anchor(a.Section),
	}
}

// Rules returns the rules file of Prometheus.
func Rules() ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Alerts of Limitgate, and the rates that they use. docs/alerts.md describes them.\n# %s\ngroups:\n", written)
	for _, g := range groups() {
		for line := range bytes.Lines([]byte(g.comment)) {
			fmt.Fprintf(&out, "  # %s\n", bytes.TrimSpace(line))
		}
		text, err := yaml.Marshal([]group{g})
		if err != nil {
			return nil, fmt.Errorf("write rules: %w", err)
		}
		for line := range bytes.Lines(text) {
			out.WriteString("  ")
			out.Write(line)
		}
	}
	return out.Bytes(), nil
}
