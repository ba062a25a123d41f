package bench

// securedCases compare a proxy whose clients' connections are secured with one without.
func securedCases() []Case {
	const aboutTLS = "Limitgate with `--tls-cert` beside without. The connections use TLS 1.3 and are open before the first " +
		"round. The client encrypts too, which lowers the throughput."
	const aboutUsers = "Limitgate with `--users` beside without. Each connection authenticates once, and the user's rights " +
		"to the tenant are checked for every decision."
	pair := func(name, title, about string, g gate, goal *Goal) Case {
		plain := gate{name: "limitgate, plain", kind: g.kind, traffic: g.traffic}
		return compare(name, title, about, g.side(), plain.side(), proxyCPU(goal), proxyMicros(nil), throughput(nil))
	}
	tls := func(name, title string, k kind, t traffic, goal *Goal) Case {
		return pair(name, title, aboutTLS, gate{name: "limitgate, TLS", kind: k, tls: true, traffic: t}, goal)
	}
	users := func(name, title string, t traffic) Case {
		return pair(name, title, aboutUsers, gate{name: "limitgate, users", users: true, traffic: t}, nil)
	}
	return []Case{
		tls("tls-p16", "clients by TLS, memory store, pipeline 16", inMemory, uniform(50, 16), atMost(2)),
		tls("tls-p1", "clients by TLS, memory store, pipeline 1", inMemory, uniform(50, 1), nil),
		tls("tls-redis-p16", "clients by TLS, one Redis, pipeline 16", onRedis, uniform(50, 16), atMost(2)),
		tls("tls-redis-p1", "clients by TLS, one Redis, pipeline 1", onRedis, uniform(50, 1), nil),
		users("users-p16", "clients with users, memory store, pipeline 16", uniform(50, 16)),
		users("users-p1", "clients with users, memory store, pipeline 1", uniform(50, 1)),
	}
}
