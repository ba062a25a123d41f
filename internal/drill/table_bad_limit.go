package drill

var badLimit = Drill{
	Name: "bad-limit", Summary: "a limit denies too much, and is rolled back",
	Goal: "The limit is found by its id in less than a minute, and the former limits are in force again a moment later.",
	Steps: []Step{
		{
			Text:     "Keep the limits in force, and give the tenant " + Tenant + " an override that is much too small, such as tenant: {rate: 1/m, burst: 1} with examples/limits.yaml.",
			Commands: []string{"cp limits.yaml limits.before.yaml", "limitgate limits lint limits.yaml", "limitgate limits diff limits.before.yaml limits.yaml"},
		},
		{
			Text:     "Bring it into force. The proxy reads a file again by itself; a table needs push.",
			Commands: []string{"redis-cli -p 6380 RL.CONFIG VERSION", "limitgate limits push limits.yaml dynamodb://TABLE"},
		},
		{Text: "Send checks until they are denied.", Commands: []string{"limitgate check --addr 127.0.0.1:6380 " + Tenant + " - -"}},
		{
			Text: "Find the limit as if you did not know it: what denies, whom, and why it applies.",
			Commands: []string{
				"limitgate denied --addr 127.0.0.1:6380", "limitgate top --addr 127.0.0.1:6380",
				"limitgate explain --addr 127.0.0.1:6380 " + Tenant + " - -", "limitgate limits history --bucket BUCKET " + Tenant,
			},
		},
		{Text: "Repeat it with --limits-canary 5% and traffic of many tenants: a proxy takes back limits that deny too much by itself."},
	},
	Signs: []Sign{
		{InLog, "limits reloaded", "with the new version and its changes"},
		{InLog, "canary limits taken back", "of a canary that denied too much, with the figures"},
		{InMetrics, `limitgate_decisions_total{verdict="deny"}`, "grows for one limit"},
		{InMetrics, "limitgate_config_info", "has another version"},
		{InMetrics, "limitgate_config_loaded_timestamp_seconds", "is the time at which that began"},
		{InMetrics, "limitgate_trial_denied", "of a canary: what the new limits deny, and what the old ones would"},
		{InReplies, "denied by", "of limitgate check, with the id of the limit, and exit code 2; RL.CHECK has the id in its sixth field"},
		{InAlerts, "LimitgateDenialsAfterChange", "fires 2 minutes after the share of denials is above 1 % and three times that of the hour before; the tenant " + Tenant + " alone is too little for it"},
	},
	Times: []Time{
		{"until a changed file is in force", "a moment; RL.CONFIG RELOAD waits for it", "operations.md"},
		{"until a change of a table is in force everywhere", "about a second; more than 60 s is an alert", "runbook.md"},
		{"until a canary that denies too much is taken back", "200 requests in a minute at least", "rollout.md"},
	},
	End: []Step{
		{Text: "Of a file: restore the former one, and have it read.", Commands: []string{"mv limits.before.yaml limits.yaml", "redis-cli -p 6380 RL.CONFIG RELOAD"}},
		{Text: "Of a table: restore the item as it was in a version of its history, as a new version.", Commands: []string{"limitgate limits rollback --bucket BUCKET --to 1 dynamodb://TABLE " + Tenant}},
		{Text: "Of a canary: end it in all proxies, or by the gate.", Commands: []string{"redis-cli -p 6380 RL.CONFIG ABORT", "limitgate rollout abort --gate appconfig://APP/ENV/PROFILE dynamodb://TABLE"}},
		{Text: "Give the tenant full buckets again.", Commands: []string{"redis-cli -p 6380 RL.RESET " + Tenant}},
	},
	Pages: []Where{{"runbook.md", "A bad rule denies every request (429)"}, {"rollout.md", "Trying limits on some tenants first"}},
}
