package alerts

import (
	"fmt"
	"math"
	"strings"
)

// SLO is a service level objective: a share of events that have to be good.
type SLO struct {
	Name    string  // its label slo
	Promise string  // a clause that holds for a good event
	Event   string  // in the plural
	Budget  float64 // the share of events that may be bad
	Errors  string  // PromQL of the share of bad events in WINDOW
	Guard   string  // the end of the expressions of its alerts
	Section string
	Alert   string // the beginning of the names of its alerts
	// series returns series of which a share of the events is bad for some minutes, and none
	// after that.
	series func(bad, after, share float64) []Series
}

// burn is an alert of each SLO. It fires while the budget burns faster than rate in both
// windows: the long one shows that it matters, and the short one that it goes on. At the rate
// 1 the budget of 30 days lasts for 30 days.
type burn struct {
	name        string
	long, short string
	rate        float64
	severity    Severity
	burned      string  // the part of the budget that burns in the long window
	lasts       string  // how long all of it lasts
	bad         float64 // minutes of errors in its test
	clear       string  // when the test is quiet again
}

var burns = []burn{
	{"Fast", "1h", "5m", 14.4, Page, "2 %", "two days", 60, "80m"},
	{"Steady", "6h", "30m", 6, Page, "5 %", "five days", 60, "105m"},
	{"Slow", "3d", "6h", 1, Ticket, "10 %", "30 days", 120, "240m"},
}

// SLOs are the objectives. docs/slo.md describes them.
var SLOs = []SLO{
	{
		Name:    "latency",
		Promise: "Limitgate adds at most 5 ms to a check",
		Event:   "decisions",
		Budget:  0.01,
		Errors: `1 - sum by (job) (rate(limitgate_decision_seconds_bucket{le="0.005"}[WINDOW]))
/ sum by (job) (rate(limitgate_decision_seconds_count[WINDOW]))`,
		Guard:   busy,
		Section: "Decisions are slow",
		Alert:   "LimitgateLatencyBudget",
		series: func(bad, after, share float64) []Series {
			return []Series{
				{of("limitgate_decision_seconds_bucket", `source="store",le="0.005"`), dip(bad, after, 1-share)},
				{of("limitgate_decision_seconds_count", `source="store"`), dip(bad, after, 1)},
				{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="admit"`), dip(bad, after, 1)},
			}
		},
	},
	{
		Name:    "in_time",
		Promise: "A check is decided in time, and not by the backstop",
		Event:   "decisions",
		Budget:  0.0001,
		Errors: `(sum by (job) (rate(limitgate_decisions_total{mode="enforce",source="backstop"}[WINDOW]))
or 0 * sum by (job) (rate(limitgate_decisions_total{mode="enforce"}[WINDOW])))
/ sum by (job) (rate(limitgate_decisions_total{mode="enforce"}[WINDOW]))`,
		Guard:   busy,
		Section: "The store does not decide",
		Alert:   "LimitgateInTimeBudget",
		series: func(bad, after, share float64) []Series {
			return []Series{
				{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="admit"`), dip(bad, after, 1-share)},
				{of("limitgate_decisions_total", `limit="a",mode="enforce",source="backstop",verdict="admit"`), grow(math.Round(share*events), bad, 0, after)},
			}
		},
	},
	{
		Name:    "propagation",
		Promise: "A change of limits reaches a proxy within 60 s",
		Event:   "changes",
		Budget:  0.01,
		// Prometheus 3 writes 60.0.
		Errors: `1 - sum by (job) (rate(limitgate_config_propagation_seconds_bucket{le=~"60([.]0)?"}[WINDOW]))
/ sum by (job) (rate(limitgate_config_propagation_seconds_count[WINDOW]))`,
		Section: "Changes of limits arrive late",
		Alert:   "LimitgatePropagationBudget",
		series: func(bad, after, share float64) []Series {
			return []Series{
				{of("limitgate_config_propagation_seconds_bucket", `le="60.0"`), dip(bad, after, 1-share)},
				{of("limitgate_config_propagation_seconds_count", ""), dip(bad, after, 1)},
			}
		},
	},
	{
		Name:    "drift",
		Promise: "All cells together admit at most 5 % more than a limit in a minute",
		Event:   "minutes",
		Budget:  0.01,
		Errors:  `avg_over_time(limitgate:drifting[WINDOW])`,
		Section: "Cells admit more than a limit",
		Alert:   "LimitgateDriftBudget",
		series: func(bad, after, share float64) []Series {
			return []Series{{of("limitgate_over_admission_ratio", `quantile="1"`), drift(bad, after, share)}}
		},
	},
}

// windows are the windows of all burns.
var windows = []string{"5m", "30m", "1h", "6h", "3d"}

// events is the number of events in a minute of the test series.
const events = 100000

// dip returns a counter of a share of the events for some minutes, and of all after that.
func dip(bad, after, share float64) string {
	return grow(math.Round(share*events), bad, events, after)
}

// drift returns a ratio that is too large in a share of some minutes, and in none after that.
func drift(bad, after, share float64) string {
	var values []float64
	for every := math.Floor(1 / share); bad > 0; bad -= every {
		values = append(values, 1.06, 1, 1, every-1)
	}
	return hold(append(values, 1, after)...)
}

// burnAlerts returns the alerts of all SLOs.
func burnAlerts() (all []Alert) {
	for _, slo := range SLOs {
		for _, b := range burns {
			all = append(all, slo.burnAlert(b))
		}
	}
	return all
}

// burnAlert returns the alert of one burn. Its tests burn at five quarters and at four fifths
// of the rate.
func (s SLO) burnAlert(b burn) Alert {
	share := b.rate * s.Budget
	labels := map[string]string{"job": "limitgate", "slo": s.Name}
	return Alert{
		Name:     s.Alert + b.name,
		Severity: b.severity,
		Expr:     fmt.Sprintf("%s{slo=%q} > %v\nand %s{slo=%q} > %v", burnRate(b.long), s.Name, b.rate, burnRate(b.short), s.Name, b.rate) + s.Guard,
		Summary:  fmt.Sprintf("In %s more than %s of the error budget of the SLO %s have burned.", b.long, b.burned, s.Name),
		Meaning:  fmt.Sprintf("%s: this should hold for %s. At this rate the budget of 30 days lasts for %s.", s.Promise, s.good(), b.lasts),
		Section:  s.Section,
		Cases: []Case{
			{
				Series: s.series(b.bad, 150, 1.25*share),
				Labels: labels,
				Fires:  []string{fmt.Sprintf("%vm", b.bad-1)},
				Quiet:  []string{b.clear},
			},
			{Series: s.series(b.bad, 30, 0.8*share), Quiet: []string{fmt.Sprintf("%vm", b.bad-1)}},
		},
	}
}

// burnRate returns the name of the recorded rate of a window.
func burnRate(window string) string { return "limitgate:slo_burn:rate" + window }

// inWindow returns the expression of the share of bad events in a window.
func (s SLO) inWindow(window string) string { return strings.ReplaceAll(s.Errors, "WINDOW", window) }

// good returns the events that should be good.
func (s SLO) good() string { return fmt.Sprintf("%v %% of %s", 100-100*s.Budget, s.Event) }
