package drill

var failover = Drill{
	Name: "failover", Summary: "a master dies, and its replica takes over", Runs: true,
	Goal: "No check gets an error, and the proxies find the promoted replica without help.",
	Steps: append(markSteps[:len(markSteps):len(markSteps)],
		Step{
			Text: "Make the outage: the master of the tenant " + Tenant + " decides nothing for 5 s, as if it hung, and then a replica is promoted by CLUSTER FAILOVER FORCE. It needs a Redis Cluster, and a user with +client|pause, +client|unpause, +cluster|failover, +cluster|slots, +cluster|replicas, +cluster|keyslot, +role, +info and +get.",
			Commands: []string{
				"limitgate drill failover --run --redis HOST:PORT --addr 127.0.0.1:6380 --admin 127.0.0.1:9180",
			},
		},
		Step{
			Text:     "Meanwhile, in other terminals, look at the breakers and at the share of the backstop.",
			Commands: []string{"limitgate shards --addr 127.0.0.1:6380 --every 1s", "limitgate stats --addr 127.0.0.1:6380"},
		},
		Step{Text: "Then practise it once with a master whose process you end, in a cluster that has no other use: the cluster has to notice that by itself."},
	),
	Signs: []Sign{
		{InLog, "store degraded, using backstop", "the first call failed; kind is timeout or overload where the master hangs, network where its process is gone"},
		{InLog, "shard breaker open", "the proxy no longer asks this master"},
		{InLog, "unresponsive master replaced", "the proxy has found the promoted replica, which is behind `by`; shard breaker closed or store recovered instead, if the master came back"},
		{InMetrics, `limitgate_store_errors_total{kind="timeout"}`, `grows for a tenth of a second, then {kind="breaker"} does; {kind="network"} where the process is gone`},
		{InMetrics, "limitgate_breaker_state", "1 of this shard; the series of the former master end with the outage"},
		{InMetrics, `limitgate_decisions_total{source="backstop"}`, "grows during the outage only"},
		{InMetrics, "limitgate_shard_outage_seconds", "has counted the outage when it is over"},
		{InReplies, "source backstop", "of limits that fail open; those that fail closed deny with source policy and the time of the next try as retry_after"},
		{InAlerts, "LimitgateShardOut", "fires only where the outage lasts longer than 30 s, which is too long for a cluster with replicas"},
	},
	Times: []Time{
		{"a check waits for a master that hangs", "5 ms", "--decision-timeout"},
		{"until the breaker opens", "a tenth of a second of failures, ten of them at least", "failure-modes.md"},
		{"until the cluster promotes a replica by itself", "cluster-node-timeout and a second", "runbook.md"},
		{"until the proxy finds the promoted replica", "half a second, the time between two looks while a breaker is open", "failure-modes.md"},
		{"until it tries a master that came back", "1 s and up to a fifth more", "--breaker-cooldown"},
	},
	End: []Step{
		{
			Text:     "Look whether the cluster is whole. The former master is a replica now; where the roles matter, give it its hash slots back.",
			Commands: []string{"redis-cli --cluster check HOST:PORT", "redis-cli -h FORMER-MASTER -p PORT CLUSTER FAILOVER"},
		},
		unmarkStep,
	},
	Pages: []Where{{"runbook.md", "A master dies"}, {"runbook.md", "A master hangs, or is slow"}},
}

// unmarkStep ends a drill that Run makes.
var unmarkStep = Step{Text: "Remove the mark.", Commands: []string{"redis-cli -c -h HOST -p PORT DEL " + MarkKey}}
