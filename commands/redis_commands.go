package commands

// standardRows are the commands of Redis that clients and monitors send, and those that
// people try.
func standardRows() []row {
	fast := []string{"fast"}
	return []row{
		{"ping", -1, groupConnection, fast, "[message]", "Answer PONG, or the message.", pingCommand},
		{"echo", 2, groupConnection, fast, "message", "Answer the message.", echoCommand},
		{"hello", -1, groupConnection, fast, "[protover [AUTH username password] [SETNAME clientname]]", "Choose the protocol version, 2 or 3.", helloCommand},
		{"auth", -2, groupConnection, fast, "[username] password", "Authenticate.", authCommand},
		{"select", 2, groupConnection, fast, "index", "Choose a database; there is only 0.", selectCommand},
		{"quit", -1, groupConnection, fast, "", "Close the connection.", quitCommand},
		{"reset", 1, groupConnection, fast, "", "Forget the state of the connection.", resetConnectionCommand},
		{"client", -2, groupConnection, nil, "", "Ask about, name and end connections.", nil},

		{"multi", 1, groupConnection, fast, "", "Keep the commands that follow until EXEC.", multiCommand},
		{"exec", 1, groupConnection, nil, "", "Answer the commands kept since MULTI.", execCommand},
		{"discard", 1, groupConnection, fast, "", "Forget the commands kept since MULTI.", discardCommand},
		{"watch", -2, groupConnection, fast, "key [key ...]", "Answer OK: there are no keys to watch.", watchCommand},
		{"unwatch", 1, groupConnection, fast, "", "Answer OK.", okCommand},

		{"cluster", -2, groupCluster, nil, "", "A cluster of one node, so that cluster clients work.", nil},
		{"readonly", 1, groupCluster, fast, "", "Answer OK: there are no replicas.", okCommand},
		{"readwrite", 1, groupCluster, fast, "", "Answer OK.", okCommand},
		{"asking", 1, groupCluster, fast, "", "Answer OK: no slot ever moves.", okCommand},

		{"del", -2, groupLimit, []string{"write"}, "key [key ...]", "Forget buckets of CL.THROTTLE, GCRA and THROTTLE; how many there were.", delCommand},
		{"unlink", -2, groupLimit, []string{"write", "fast"}, "key [key ...]", "Forget buckets of CL.THROTTLE, GCRA and THROTTLE, as DEL does.", delCommand},

		{"command", -1, groupServer, nil, "", "Describe the commands.", commandCommand},
		{"info", -1, groupServer, nil, "[section [section ...]]", "Describe the server.", infoCommand},
		{"config", -2, groupServer, nil, "", "The few settings that Redis clients ask for.", nil},
		{"time", 1, groupServer, fast, "", "The clock of this proxy.", timeCommand},
		{"role", 1, groupServer, fast, "", "Answer master: any connection may be used.", roleCommand},
		{"acl", -2, groupServer, nil, "", "The user of this connection.", nil},
		{"dbsize", 1, groupServer, fast, "", "Answer 0: buckets are not keys of this server.", zeroCommand},
		{"memory", -2, groupServer, nil, "", "The memory of this proxy.", nil},
		{"latency", -2, groupServer, nil, "", "Nothing is recorded: /metrics has histograms.", nil},
		{"slowlog", -2, groupServer, nil, "", "Nothing is recorded: /metrics has histograms.", nil},
	}
}
