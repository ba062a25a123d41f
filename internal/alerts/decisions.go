package alerts

// decisionAlerts are about decisions as callers see them.
var decisionAlerts = []Alert{
	{
		Name:     "LimitgateDecisionsSlow",
		Severity: Ticket,
		Expr:     `histogram_quantile(0.99, sum by (job, le) (rate(limitgate_decision_seconds_bucket[5m]))) > 0.005` + busy,
		For:      "5m",
		Summary:  "One decision in a hundred takes longer than 5 ms.",
		Meaning:  "Callers wait. No decision waits for the store longer than --decision-timeout, so the proxies are short of processor time, or that setting is larger than 5 ms.",
		Section:  "Decisions are slow",
		Cases: []Case{{
			Series: []Series{
				{of("limitgate_decision_seconds_bucket", `source="store",le="0.005"`), grow(1000, 10, 900, 20, 1000, 30)},
				{of("limitgate_decision_seconds_bucket", `source="store",le="0.01"`), grow(1000, 10, 950, 20, 1000, 30)},
				{of("limitgate_decision_seconds_bucket", `source="store",le="+Inf"`), grow(1000, 60)},
				{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="admit"`), grow(1000, 60)},
			},
			Labels: ofJob,
			Fires:  []string{"20m"},
			Quiet:  []string{"9m", "45m"},
		}},
		Twin: &Twin{
			Alarm:     "DecisionsSlowAlarm",
			Metrics:   []Metric{{Name: "DecisionP99", Statistic: "Average"}},
			Threshold: 5,
			Minutes:   5,
		},
	},
	{
		Name:     "LimitgateDenialsAfterChange",
		Severity: Page,
		Expr: `limitgate:denied:ratio_rate5m > 0.01
and limitgate:denied:ratio_rate5m > 3 * limitgate:denied:ratio_rate1h offset 15m
and on (job) time() - max by (job) (limitgate_config_loaded_timestamp_seconds) < 900` + busy,
		For:     "2m",
		Summary: "Since a change of limits, three times as many requests are denied.",
		Meaning: "The share of denials is above 1 % and three times that of the hour before, and limits were loaded within 15 minutes. The start of a proxy loads limits, too. Denials without a change of limits cause no alert. It ends 15 minutes after the change, whether or not requests are still denied.",
		Section: "A bad rule denies every request (429)",
		Cases: []Case{
			{
				Series: []Series{
					{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="admit"`), grow(1000, 80, 500, 40)},
					{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="deny"`), grow(10, 80, 500, 40)},
					{of("limitgate_config_loaded_timestamp_seconds", ""), hold(0, 80, 4800, 40)},
				},
				Labels: ofJob,
				Fires:  []string{"88m"},
				Quiet:  []string{"79m", "97m"},
			},
			{ // the first denials of all
				Series: []Series{
					{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="admit"`), grow(1000, 80, 500, 40)},
					{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="deny"`), "_x79 " + grow(500, 40)},
					{of("limitgate_config_loaded_timestamp_seconds", ""), hold(0, 80, 4800, 40)},
				},
				Labels: ofJob,
				Fires:  []string{"88m"},
				Quiet:  []string{"79m", "97m"},
			},
			{ // denials without a change
				Series: []Series{
					{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="admit"`), grow(1000, 80, 500, 40)},
					{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="deny"`), grow(10, 80, 500, 40)},
					{of("limitgate_config_loaded_timestamp_seconds", ""), hold(0, 120)},
				},
				Quiet: []string{"88m"},
			},
			{ // a change without denials
				Series: []Series{
					{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="admit"`), grow(1000, 120)},
					{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="deny"`), grow(10, 80, 20, 40)},
					{of("limitgate_config_loaded_timestamp_seconds", ""), hold(0, 80, 4800, 40)},
				},
				Quiet: []string{"88m"},
			},
		},
	},
	{
		Name:     "LimitgateDecisionsShed",
		Severity: Ticket,
		Expr: `sum by (job, instance) (rate(limitgate_shed_decisions_total[5m]))
> 0.01 * sum by (job, instance) (rate(limitgate_decisions_total{mode="enforce"}[5m]))`,
		For:     "5m",
		Summary: "A proxy sheds more than one call to the store in a hundred decisions.",
		Meaning: "It has more to do than it can: calls that waited for half of --decision-timeout are not sent, and the backstop decides.",
		Section: "A proxy has more to do than it can",
		Cases: []Case{{
			Series: []Series{
				{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="admit"`), grow(1000, 60)},
				{of("limitgate_shed_decisions_total", ""), grow(0, 10, 50, 20, 0, 30)},
			},
			Labels: map[string]string{"job": "limitgate", "instance": "a"},
			Fires:  []string{"20m"},
			Quiet:  []string{"9m", "45m"},
		}},
	},
	{
		Name:     "LimitgateLeasesSmall",
		Severity: Ticket,
		Expr: `limitgate:lease_refreshes:rate5m > 1
and limitgate:lease_refreshes:rate5m > 0.5 * (limitgate:lease_decisions:rate5m or 0 * limitgate:lease_refreshes:rate5m)`,
		For:     "5m",
		Summary: "Leases are refreshed more than once for two decisions of them.",
		Meaning: "They save few calls to the store, and each costs units that other proxies could use meanwhile.",
		Section: "Leases are too small",
		Cases: []Case{
			{
				Series: []Series{
					{of("limitgate_decisions_total", `limit="a",mode="enforce",source="lease",verdict="admit"`), grow(6000, 60)},
					{of("limitgate_lease_refreshes_total", ""), grow(600, 10, 6000, 20, 600, 30)},
				},
				Labels: ofJob,
				Fires:  []string{"20m"},
				Quiet:  []string{"9m", "45m"},
			},
			{ // no decision at all
				Series: []Series{{of("limitgate_lease_refreshes_total", ""), grow(0, 10, 600, 20, 0, 30)}},
				Labels: ofJob,
				Fires:  []string{"20m"},
				Quiet:  []string{"9m", "45m"},
			},
		},
		Twin: &Twin{
			Alarm:      "LeasesSmallAlarm",
			Metrics:    []Metric{{"refreshes", "LeaseRefreshes", "Sum"}, {"leased", "LeaseDecisions", "Sum"}},
			Expression: "IF(refreshes > 60, refreshes / (leased + 1), 0)",
			Threshold:  0.5,
			Minutes:    5,
		},
	},
}
