package alerts

// limitsAlerts are about limits on their way to proxies.
var limitsAlerts = []Alert{
	{
		Name:     "LimitgatePropagationSlow",
		Severity: Ticket,
		Expr:     `histogram_quantile(0.99, sum by (job, le) (rate(limitgate_config_propagation_seconds_bucket[5m]))) > 60`,
		Summary:  "Changes of limits take longer than 60 s to reach proxies.",
		Meaning:  "Messages are late or lost, and proxies found the change by reading the table. Clocks that differ look the same.",
		Section:  "Changes of limits arrive late",
		Cases: []Case{{
			Series: []Series{
				{of("limitgate_config_propagation_seconds_bucket", `le="60"`), grow(1, 10, 0, 5, 1, 20)},
				{of("limitgate_config_propagation_seconds_bucket", `le="300"`), grow(1, 35)},
				{of("limitgate_config_propagation_seconds_bucket", `le="+Inf"`), grow(1, 35)},
			},
			Labels: ofJob,
			Fires:  []string{"14m"},
			Quiet:  []string{"9m", "22m"},
		}},
	},
	{
		Name:     "LimitgateLimitsStale",
		Severity: Ticket,
		Expr:     `count by (job) (limitgate_config_stale == 1)`,
		For:      "5m",
		Summary:  "Proxies have used stale limits for 5 minutes.",
		Meaning:  "Newer limits could not be loaded, or no digest of the table of limits arrives. The last good limits stay in force. The value is the number of such proxies.",
		Section:  "Limits are stale",
		Cases: []Case{{
			Series: []Series{{of("limitgate_config_stale", ""), hold(0, 10, 1, 10, 0, 10)}},
			Labels: ofJob,
			Fires:  []string{"16m"},
			Quiet:  []string{"9m", "13m", "25m"},
		}},
		Twin: &Twin{
			Alarm:     "LimitsStaleAlarm",
			Metrics:   []Metric{{Name: "ConfigStale", Statistic: "Maximum"}},
			Threshold: 0,
			Minutes:   5,
		},
	},
}

// cellAlerts are about cells that share limits; a control plane exports their metrics.
var cellAlerts = []Alert{
	{
		Name:     "LimitgateOverAdmission",
		Severity: Ticket,
		Expr:     `max by (job) (limitgate_over_admission_level) >= 1`,
		Summary:  "All cells together admit 1.5 times a limit.",
		Meaning:  "It happens for a moment when cells join or leave.",
		Section:  "Cells admit more than a limit",
		Cases: []Case{{
			Series: []Series{{of("limitgate_over_admission_level", ""), hold(0, 10, 1, 3, 0, 10)}},
			Labels: ofJob,
			Fires:  []string{"11m"},
			Quiet:  []string{"9m", "15m"},
		}},
		Twin: &Twin{Alarm: "OverAdmissionAlarm", Elsewhere: true},
	},
	{
		Name:     "LimitgateOverAdmissionLasts",
		Severity: Page,
		Expr:     `max by (job) (limitgate_over_admission_ratio{quantile="1"}) >= 1.5`,
		For:      "10m",
		Summary:  "All cells together have admitted 1.5 times a limit for 10 minutes.",
		Meaning:  "Cells do not know of each other, or count differently.",
		Section:  "Cells admit more than a limit",
		Cases: []Case{{
			Series: []Series{{of("limitgate_over_admission_ratio", `quantile="1"`), hold(1, 10, 1.6, 15, 1, 10)}},
			Labels: ofJob,
			Fires:  []string{"22m"},
			Quiet:  []string{"9m", "18m", "30m"},
		}},
		Twin: &Twin{Alarm: "OverAdmissionLastsAlarm", Elsewhere: true},
	},
	{
		Name:     "LimitgateOverAdmissionTriple",
		Severity: Page,
		Expr:     `max by (job) (limitgate_over_admission_ratio{quantile="1"}) >= 3`,
		Summary:  "All cells together admit 3 times a limit.",
		Meaning:  "Each of three cells or more enforces the whole limit, or a cell admits without one.",
		Section:  "Cells admit more than a limit",
		Cases: []Case{{
			Series: []Series{{of("limitgate_over_admission_ratio", `quantile="1"`), hold(1, 10, 3, 5, 2.9, 10)}},
			Labels: ofJob,
			Fires:  []string{"12m"},
			Quiet:  []string{"9m", "20m"},
		}},
		Twin: &Twin{Alarm: "OverAdmissionTripleAlarm", Elsewhere: true},
	},
	{
		Name:     "LimitgateLimitsDiffer",
		Severity: Ticket,
		Expr:     `count by (job) (count by (job, version) (limitgate_config_info and limitgate_config_info offset 10m)) > 1`,
		Summary:  "Proxies have used different limits for 10 minutes.",
		Meaning:  "A change has reached some of the proxies. Each proxy decides by its own limits, and all count in the same buckets. The value is the number of versions that were in use 10 minutes ago and are now.",
		Section:  "Proxies have different limits",
		Cases: []Case{{
			Series: []Series{
				{of("limitgate_config_info", `version="v1"`), hold(1, 40)},
				{`limitgate_config_info{job="limitgate",instance="b",version="v1"}`, hold(1, 10) + " stale"},
				{`limitgate_config_info{job="limitgate",instance="b",version="v2"}`, "_x9 " + hold(1, 15) + " stale"},
			},
			Labels: ofJob,
			Fires:  []string{"21m"},
			Quiet:  []string{"9m", "15m", "30m"},
		}, { // a table that changes often, and a proxy that is scraped later
			Series: []Series{
				{of("limitgate_config_info", `version="v1"`), hold(1, 8) + " stale"},
				{of("limitgate_config_info", `version="v2"`), "_x8 " + hold(1, 8) + " stale"},
				{of("limitgate_config_info", `version="v3"`), "_x16 " + hold(1, 20)},
				{`limitgate_config_info{job="limitgate",instance="b",version="v1"}`, hold(1, 9) + " stale"},
				{`limitgate_config_info{job="limitgate",instance="b",version="v2"}`, "_x9 " + hold(1, 8) + " stale"},
				{`limitgate_config_info{job="limitgate",instance="b",version="v3"}`, "_x17 " + hold(1, 20)},
			},
			Labels: ofJob,
			Quiet:  []string{"8m", "12m", "16m", "20m", "30m"},
		}},
	},
}
