package bench

// httpCases compare checks over HTTP with RL.CHECK.
func httpCases() []Case {
	const about = "Checks over HTTP beside `RL.CHECK` by the same client, on the same number of connections, which stay open, one " +
		"request at a time on each. Answers have some 200 bytes, with the header fields of the limit; those of `RL.CHECK` have sixty."
	pair := func(name, title string, k kind, path string) Case {
		t := uniform(50, 1)
		over := httpGate{gate: gate{name: "limitgate, HTTP", kind: k, traffic: t, flags: []string{"--http", "127.0.0.1:0", "--http-gateway", "nginx"}}, path: path}
		resp := httpGate{gate: gate{name: "limitgate, RESP", kind: k, traffic: t}}
		return compare(name, title, about, over.side(), resp.side(), proxyCPU(atMost(2)), proxyMicros(nil), throughput(nil))
	}
	return []Case{
		pair("http-check", "a gateway asks /check, memory store", inMemory, "/check"),
		pair("http-json", "POST /v1/check, memory store", inMemory, "/v1/check"),
		pair("http-redis-check", "a gateway asks /check, one Redis", onRedis, "/check"),
	}
}
