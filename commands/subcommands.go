package commands

import (
	"context"
	"strings"
)

// subcommands returns the rows of each container; HELP is added to all.
func subcommands() map[string][]row {
	admin, fast := []string{"admin"}, []string{"fast"}
	server := func(name string, arity int, flags []string, usage, summary string, run func(context.Context, *Session, [][]byte)) row {
		return row{name, arity, groupServer, flags, usage, summary, run}
	}
	return map[string][]row{
		"client":  clientRows(),
		"cluster": clusterRows(),
		"command": commandRows(),
		"config": {
			server("get", -3, admin, "parameter [parameter ...]", "Settings that match, by patterns.", configGet),
			server("set", -4, admin, "parameter value [parameter value ...]", "Refused: settings do not change while the proxy runs.", configSet),
			server("rewrite", 2, admin, "", "Refused: the settings file is read only.", configRewrite),
		},
		"acl": {
			server("whoami", 2, nil, "", "The user of this connection.", aclWhoAmI),
			server("cat", -2, nil, "[category]", "The categories of commands, or the commands of one.", aclCat),
			server("list", 2, admin, "", "The users, as rules.", aclList),
			server("users", 2, admin, "", "The names of the users.", aclUsers),
			server("getuser", 3, admin, "username", "The rules of a user.", aclGetUser),
			server("dryrun", -4, admin, "username command [arg [arg ...]]", "Whether a user may send a command.", aclDryRun),
			server("load", 2, admin, "", "Read the file of users again.", aclLoad),
		},
		"memory": {
			server("doctor", 2, nil, "", "Says where to look.", memoryDoctor),
			server("purge", 2, nil, "", "Answer OK.", okCommand),
			server("stats", 2, nil, "", "The memory of this process.", memoryStats),
			server("usage", -3, []string{"readonly"}, "key [SAMPLES count]", "Answer null: there are no keys.", memoryUsage),
		},
		"latency": {
			server("latest", 2, admin, "", "Answer an empty array.", nothing),
			server("history", 3, admin, "event", "Answer an empty array.", nothing),
			server("histogram", -2, admin, "[command [command ...]]", "Answer an empty map.", nothingNamed),
			server("graph", 3, admin, "event", "Refused: there are no samples.", latencyGraph),
			server("reset", -2, admin, "[event [event ...]]", "Answer 0.", zeroCommand),
			server("doctor", 2, admin, "", "Says where to look.", latencyDoctor),
		},
		"slowlog": {
			server("get", -2, admin, "[count]", "Answer an empty array.", slowlogGet),
			server("len", 2, append(admin, fast...), "", "Answer 0.", zeroCommand),
			server("reset", 2, admin, "", "Answer OK.", okCommand),
		},
	}
}

func clientRows() []row {
	const c = groupConnection
	admin := []string{"admin"}
	return []row{
		{"id", 2, c, nil, "", "The number of this connection.", clientID},
		{"info", 2, c, nil, "", "This connection's line of CLIENT LIST.", clientInfo},
		{"list", -2, c, admin, "[TYPE client-type] [ID client-id [client-id ...]]", "The open connections, a line each.", clientList},
		{"kill", -3, c, admin, "old-format | filter value [filter value ...]", "End connections, by ADDR, LADDR, ID, TYPE, USER and SKIPME.", clientKill},
		{"getname", 2, c, nil, "", "The name of this connection.", clientGetName},
		{"setname", 3, c, nil, "connection-name", "Name this connection.", clientSetName},
		{"setinfo", 4, c, nil, "LIB-NAME libname | LIB-VER libver", "Say which library this connection is of.", clientSetInfo},
		{"reply", 3, c, nil, "ON | OFF | SKIP", "Say which replies are wanted.", clientReply},
		{"tracking", -3, c, nil, "status [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]", "Answer OK: clients keep nothing that could change.", clientTracking},
		{"trackinginfo", 2, c, nil, "", "The state of CLIENT TRACKING.", clientTrackingInfo},
		{"caching", 3, c, nil, "YES | NO", "Answer OK.", clientCaching},
		{"getredir", 2, c, nil, "", "Where invalidations would go.", clientGetRedir},
		{"no-evict", 3, c, admin, "ON | OFF", "Answer OK: no client is evicted.", clientSwitch},
		{"no-touch", 3, c, nil, "ON | OFF", "Answer OK: there are no keys to touch.", clientSwitch},
		{"unblock", -3, c, admin, "client-id [TIMEOUT | ERROR]", "Answer 0: no client is ever blocked.", clientUnblock},
		{"unpause", 2, c, admin, "", "Answer OK: clients are never paused.", okCommand},
	}
}

func clusterRows() []row {
	const c = groupCluster
	return []row{
		{"info", 2, c, nil, "", "The state of the cluster of one.", clusterInfo},
		{"slots", 2, c, nil, "", "Every slot, and this proxy.", clusterSlots},
		{"shards", 2, c, nil, "", "Every slot, and this proxy.", clusterShards},
		{"nodes", 2, c, nil, "", "This proxy, as a line.", clusterNodes},
		{"myid", 2, c, nil, "", "The id of this proxy.", clusterMyID},
		{"keyslot", 3, c, nil, "key", "The slot that a key has.", clusterKeySlot},
		{"countkeysinslot", 3, c, nil, "slot", "Answer 0.", clusterCountKeys},
		{"getkeysinslot", 4, c, nil, "slot count", "Answer an empty array.", clusterGetKeys},
		{"links", 2, c, nil, "", "Answer an empty array.", nothing},
		{"replicas", 3, c, nil, "node-id", "Answer an empty array.", clusterReplicas},
		{"slaves", 3, c, nil, "node-id", "Answer an empty array.", clusterReplicas},
	}
}

func commandRows() []row {
	const c = groupServer
	return []row{
		{"count", 2, c, nil, "", "How many commands there are.", commandCount},
		{"list", -2, c, nil, "[FILTERBY [MODULE module-name | ACLCAT category | PATTERN pattern]]", "The names of the commands.", commandList},
		{"info", -2, c, nil, "[command-name [command-name ...]]", "Arity, flags and keys of commands.", commandInfo},
		{"docs", -2, c, nil, "[command-name [command-name ...]]", "Arguments and summaries of commands.", commandDocs},
		{"getkeys", -4, c, nil, "command arg [arg ...]", "Which arguments of a command are keys.", commandGetKeys},
		{"getkeysandflags", -4, c, nil, "command arg [arg ...]", "Which arguments of a command are keys, and whether it changes them.", commandGetKeysAndFlags},
	}
}

// helpRow is the HELP subcommand of every container.
func helpRow(group string) row {
	return row{"help", 2, group, nil, "", "Print this help.", containerHelp}
}

// containerHelp replies with two lines for each subcommand, as Redis does.
func containerHelp(_ context.Context, s *Session, args [][]byte) {
	container := s.h.lookup(args[0])
	subs := container.sortedSubs()
	s.out.array(1 + 2*len(subs))
	s.out.simple(strings.ToUpper(container.name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, c := range subs {
		s.out.simple(strings.TrimSpace(strings.ToUpper(c.name) + " " + c.usage))
		s.out.simple("    " + c.summary)
	}
}
