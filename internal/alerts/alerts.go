// Package alerts holds the alerts of Limitgate in one table, and renders the files of it:
// rules for Prometheus with their tests, a dashboard for Grafana, alarms for CloudWatch, and
// tables of the documentation. Its tests compare these files with the table, and write them
// with -update.
package alerts

import "slices"

// Severity is how soon a person has to act.
type Severity string

// The severities.
const (
	Page   Severity = "page"   // at once
	Ticket Severity = "ticket" // on the next working day
)

// Alert is a row of the table.
type Alert struct {
	Name     string
	Severity Severity
	Expr     string // in PromQL; the alert fires for each series that it returns
	For      string // how long Expr has to return a series, "" to fire at once
	Summary  string // a sentence
	Meaning  string // sentences: the effect, or the reason of the bounds
	Section  string // a heading of docs/runbook.md
	Cases    []Case
	Twin     *Twin
}

// Case is a test of an alert by promtool. A series has a sample each minute.
type Case struct {
	Series []Series
	Labels map[string]string // those of the alert that fires, beside its severity
	Fires  []string          // times since the first sample
	Quiet  []string
}

// Series is a time series of a case.
type Series struct {
	Name   string // with its labels
	Values string // in the notation of promtool
}

// Twin is an alarm of CloudWatch with the same meaning as an alert. It looks at metrics in
// periods of a minute.
type Twin struct {
	Alarm      string // the logical name of its resource
	Elsewhere  bool   // the resource is in control-plane.yaml, and not rendered here
	Metrics    []Metric
	Expression string // computes one value of several metrics by their ids, "" for one metric
	Threshold  float64
	Minutes    int // in a row above Threshold
}

// Metric is a metric that proxies write as Embedded Metric Format.
type Metric struct {
	ID        string // in an expression
	Name      string
	Statistic string
}

// busy ends the expressions of alerts about shares of decisions: below one decision a second a
// single one would be a large share.
const busy = "\nand on (job) limitgate:decisions:rate5m > 1"

// All returns the table.
func All() []Alert {
	return slices.Concat(decisionAlerts, storeAlerts, limitsAlerts, cellAlerts, clientAlerts, burnAlerts())
}
