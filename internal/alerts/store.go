package alerts

// storeAlerts are about the Redis behind the proxies.
var storeAlerts = []Alert{
	{
		Name:     "LimitgateBackstopDecides",
		Severity: Page,
		Expr:     `limitgate:backstop:ratio_rate5m > 0.05` + busy,
		For:      "5m",
		Summary:  "The backstop makes more than one decision in twenty.",
		Meaning:  "These decisions are made without the store, each proxy by its share of the limit: tenants may get more or less than their limits. Limits that fail closed deny, and count as source policy.",
		Section:  "The store does not decide",
		Cases: []Case{
			{
				Series: []Series{
					{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="admit"`), grow(1000, 10, 800, 20, 1000, 30)},
					{of("limitgate_decisions_total", `limit="a",mode="enforce",source="backstop",verdict="admit"`), grow(0, 10, 200, 20, 0, 30)},
				},
				Labels: ofJob,
				Fires:  []string{"20m"},
				Quiet:  []string{"9m", "45m"},
			},
			{ // a few decisions a minute
				Series: []Series{
					{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="admit"`), grow(10, 30)},
					{of("limitgate_decisions_total", `limit="a",mode="enforce",source="backstop",verdict="admit"`), grow(0, 10, 2, 20)},
				},
				Quiet: []string{"20m"},
			},
		},
		Twin: &Twin{
			Alarm:      "BackstopDecidesAlarm",
			Metrics:    []Metric{{"backstop", "Backstop", "Sum"}, {"decisions", "Decisions", "Sum"}},
			Expression: "IF(decisions > 60, backstop / decisions, 0)",
			Threshold:  0.05,
			Minutes:    5,
		},
	},
	{
		Name:     "LimitgateStoreErrors",
		Severity: Ticket,
		Expr: `sum by (job, kind) (rate(limitgate_store_errors_total{kind!="breaker"}[5m]))
/ on (job) group_left () limitgate:decisions:rate5m > 0.01` + busy,
		For:     "10m",
		Summary: "The store leaves more than one call in a hundred decisions undecided.",
		Meaning: "The label kind has the reason. Calls that an open breaker holds back do not count.",
		Section: "The store does not decide",
		Cases: []Case{{
			Series: []Series{
				{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="admit"`), grow(1000, 70)},
				{of("limitgate_store_errors_total", `shard="s",kind="oom"`), grow(0, 10, 50, 30, 0, 30)},
				{of("limitgate_store_errors_total", `shard="s",kind="breaker"`), grow(0, 10, 500, 60)},
			},
			Labels: map[string]string{"job": "limitgate", "kind": "oom"},
			Fires:  []string{"30m"},
			Quiet:  []string{"9m", "55m"},
		}},
		Twin: &Twin{
			Alarm:      "StoreErrorsAlarm",
			Metrics:    []Metric{{"errors", "StoreErrors", "Sum"}, {"decisions", "Decisions", "Sum"}},
			Expression: "IF(decisions > 60, errors / decisions, 0)",
			Threshold:  0.01,
			Minutes:    10,
		},
	},
	{
		Name:     "LimitgateFailOpenInduced",
		Severity: Page,
		Expr: `limitgate:store_errors:ratio_rate5m > 0.01
and limitgate:backstop:ratio_rate5m > 0.05
and on () limitgate:upstream_saturated > 0`,
		For:     "1m",
		Summary: "The store fails, the backstop decides, and the services behind the limits are saturated.",
		Meaning: "This is how it looks when a client makes limits fail open on purpose. It needs an expression of yours in limitgate:upstream_saturated.",
		Section: "Failing open is induced",
		Cases: []Case{
			{
				Series: induced(1),
				Labels: ofJob,
				Fires:  []string{"20m"},
				Quiet:  []string{"9m", "45m"},
			},
			{Series: induced(0), Quiet: []string{"20m"}}, // an outage alone
		},
	},
	{
		Name:     "LimitgateShardOut",
		Severity: Page,
		Expr:     `count by (job, shard) (limitgate_breaker_state > 0)`,
		For:      "30s",
		Summary:  "A master of the store has been out for more than 30 s.",
		Meaning:  "The breaker of at least one proxy is open or half-open; the value is the number of such proxies. A cluster with replicas replaces a master sooner.",
		Section:  "A master dies",
		Cases: []Case{{
			Series: []Series{{of("limitgate_breaker_state", `shard="s"`), hold(0, 10, 1, 3, 2, 1, 1, 6, 0, 10)}},
			Labels: map[string]string{"job": "limitgate", "shard": "s"},
			Fires:  []string{"12m", "13m", "19m"},
			Quiet:  []string{"9m", "10m", "22m"},
		}},
		Twin: &Twin{
			Alarm:     "ShardOutAlarm",
			Metrics:   []Metric{{Name: "OpenBreakers", Statistic: "Maximum"}},
			Threshold: 0.5,
			Minutes:   1,
		},
	},
	{
		Name:     "LimitgateStoreReset",
		Severity: Page,
		Expr:     `sum by (job) (increase(limitgate_store_reset_total[15m])) > 0`,
		Summary:  "A master came back without its data.",
		Meaning:  "Each of its buckets is full again, and windows begin at zero: tenants may use their limits once more.",
		Section:  "Redis came back empty",
		Cases: []Case{{
			Series: []Series{{of("limitgate_store_reset_total", ""), hold(0, 10, 1, 40)}},
			Labels: ofJob,
			Fires:  []string{"12m"},
			Quiet:  []string{"9m", "30m"},
		}},
	},
	{
		Name:     "LimitgateRefundsLost",
		Severity: Ticket,
		Expr:     `sum by (job) (rate(limitgate_refunds_lost_total[5m])) > 0.001 * limitgate:decisions:rate5m` + busy,
		For:      "10m",
		Summary:  "One decision in a thousand loses units of a bucket.",
		Meaning:  "A call was charged whose answer came too late, or whose units could not be returned. Tenants get less than their limits until the buckets are full again.",
		Section:  "Units are lost",
		Cases: []Case{{
			Series: []Series{
				{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="admit"`), grow(1000, 70)},
				{of("limitgate_refunds_lost_total", ""), grow(0, 10, 5, 30, 0, 30)},
			},
			Labels: ofJob,
			Fires:  []string{"30m"},
			Quiet:  []string{"9m", "55m"},
		}},
	},
}

// induced returns the series of a store that fails for 20 minutes, with the saturation of
// the services behind the limits meanwhile.
func induced(saturated float64) []Series {
	return []Series{
		{of("limitgate_decisions_total", `limit="a",mode="enforce",source="store",verdict="admit"`), grow(1000, 10, 800, 20, 1000, 30)},
		{of("limitgate_decisions_total", `limit="a",mode="enforce",source="backstop",verdict="admit"`), grow(0, 10, 200, 20, 0, 30)},
		{of("limitgate_store_errors_total", `shard="s",kind="timeout"`), grow(0, 10, 200, 20, 0, 30)},
		{`limitgate:upstream_saturated{service="orders"}`, hold(0, 10, saturated, 20, 0, 30)},
	}
}
