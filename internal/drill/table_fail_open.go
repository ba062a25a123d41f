package drill

var failOpen = Drill{
	Name: "fail-open", Summary: "the whole store is away", Runs: true,
	Goal: "No check gets an error: limits that fail open are decided by shares, and the store decides again soon after it is back.",
	Steps: append(markSteps[:len(markSteps):len(markSteps)],
		Step{
			Text:     "Make the outage: CLIENT PAUSE keeps all masters from deciding for 5 s, and ends by itself even if the drill is killed. It needs a user with +client|pause, +client|unpause, +cluster|slots, +cluster|keyslot, +role, +info and +get.",
			Commands: []string{"limitgate drill fail-open --run --redis HOST:PORT --addr 127.0.0.1:6380 --admin 127.0.0.1:9180"},
		},
		Step{
			Text:     "Meanwhile, look at the state of the proxy, and at a limit that fails closed.",
			Commands: []string{"curl -s http://127.0.0.1:9180/readyz", `limitgate check --addr 127.0.0.1:6380 drill "POST /v1/payments" -`},
		},
		Step{Text: "Start a proxy during the outage of a store that refuses connections: it starts without the store, and logs it."},
	),
	Signs: []Sign{
		{InLog, "store degraded, using backstop", "once for each master that checks ask: those of the drill ask one, that of its tenant"},
		{InLog, "shard breaker open", "once for each of these masters"},
		{InLog, "shard breaker closed", "with the time that the outage took; store recovered comes with it"},
		{InLog, "starting without the store, using the backstop until it answers", "of a proxy that starts meanwhile"},
		{InMetrics, `limitgate_store_errors_total{kind="timeout"}`, `grows for these shards, then {kind="breaker"} does; {kind="network"} where connections are refused`},
		{InMetrics, "limitgate_breaker_state", "1 of each of these shards, 2 for moments; 0 of masters that no check asks"},
		{InMetrics, `limitgate_decisions_total{source="backstop"}`, "nearly all decisions of limits in the store"},
		{InMetrics, `limitgate_decisions_total{source="policy"}`, "denials of limits that fail closed"},
		{InMetrics, "limitgate_backstop_capped_total", "grows where --backstop-total-rate is used up"},
		{InMetrics, "limitgate_healthy_instances", "never falls below the last number divided by --backstop-ceiling"},
		{InReplies, "source backstop", "of RL.CHECK; /readyz stays 200, with the breaker and the error of each of its shards"},
		{InAlerts, "LimitgateBackstopDecides", "fires after 5 minutes; LimitgateShardOut after 30 s"},
	},
	Times: []Time{
		{"a check waits for the store", "5 ms", "--decision-timeout"},
		{"until the breakers open", "a tenth of a second of failures, ten of them at least", "failure-modes.md"},
		{"until a master that is back decides again", "1 s and up to a fifth more", "--breaker-cooldown"},
		{"until a proxy that started without the store finds it", "a second or so, and eight if it came back empty", "runbook.md"},
	},
	End: []Step{
		{Text: "The drill ends the pause, on Ctrl-C too. By hand, on each master:", Commands: []string{"redis-cli -h MASTER -p PORT CLIENT UNPAUSE"}},
		unmarkStep,
	},
	Pages: []Where{{"runbook.md", "The store does not decide"}, {"runbook.md", "Redis is away when a proxy starts"}},
}
