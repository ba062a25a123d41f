package drill

var secretRotation = Drill{
	Name: "secret-rotation", Summary: "the password of Redis changes",
	Goal: "No decision is made without the store while the password is replaced, and a proxy that has the former one is found before it loses its connections.",
	Steps: []Step{
		{Text: "Make a password and its SHA-256.", Commands: []string{"limitgate hash-password"}},
		{
			Text:     "Add it to the user, on every master and replica: users are not replicated. Redis takes both passwords from now on.",
			Commands: []string{"redis-cli -h NODE -p PORT --user admin --askpass ACL SETUSER limitgate '#SHA256-OF-THE-NEW'", "redis-cli -h NODE -p PORT --user admin --askpass ACL SAVE"},
		},
		{Text: "Give it to the proxies: replace the file of --redis-password-file by renaming another one to it, or write a new version of the secret of --redis-password-secret."},
		{
			Text:     "Prove that new connections use it: end those of one proxy at a time, on every master. They are made again within a moment.",
			Commands: []string{"redis-cli -h NODE -p PORT --user admin --askpass CLIENT LIST", "redis-cli -h NODE -p PORT --user admin --askpass CLIENT KILL USER limitgate"},
		},
		{Text: "Remove the former password, on every master and replica.", Commands: []string{"redis-cli -h NODE -p PORT --user admin --askpass ACL SETUSER limitgate '!SHA256-OF-THE-FORMER'"}},
		{
			Text:     "In a test store, practise the mistake too: leave the file of one proxy as it was, and end its connections.",
			Commands: []string{"curl -s http://127.0.0.1:9180/readyz", "redis-cli -h NODE -p PORT --user admin --askpass ACL LOG"},
		},
	},
	Signs: []Sign{
		{InLog, "failed to read the secret of Redis, keeping the last password", "Secrets Manager does not answer, or the role lacks secretsmanager:GetSecretValue"},
		{InLog, "store degraded, using backstop", "with kind auth: a proxy has a password that Redis no longer takes"},
		{InMetrics, `limitgate_store_errors_total{kind="auth"}`, "must not grow; it grows in a proxy with the former password"},
		{InMetrics, `limitgate_decisions_total{source="backstop"}`, "must not grow, but for the moment in which connections are ended by hand"},
		{InReplies, "WRONGPASS", "in the error of a shard in /readyz and RL.CONFIG SHARDS; /readyz returns 503 when no connection is left"},
		{InAlerts, "LimitgateBackstopDecides", "fires only where something went wrong"},
	},
	Times: []Time{
		{"until a new file is used", "the next connection", "redis-acl.md"},
		{"until a new secret is read", "two to eight minutes, or at once when a node refuses the former password", "redis-acl.md"},
		{"a connection stays logged in", "for ever; with IAM six to eleven hours", "redis-acl.md"},
	},
	End: []Step{
		{Text: "Where a proxy is refused, add the former password again, on every master and replica, and begin anew.", Commands: []string{"redis-cli -h NODE -p PORT --user admin --askpass ACL SETUSER limitgate '#SHA256-OF-THE-FORMER'"}},
		{Text: "Look whether all rights are there.", Commands: []string{"limitgate doctor --redis HOST:PORT --redis-user limitgate --redis-password-file FILE"}},
	},
	Pages: []Where{{"redis-acl.md", "Rotating the password"}, {"runbook.md", "A node is no master, or forbids what is needed"}},
}
