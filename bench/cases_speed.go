package bench

// aboutINCR is the explanation of all comparisons with INCR.
const aboutINCR = "The memory store beside `INCR` on one redis-server, which is no limiter, but a fast " +
	"counter. Its reply is one integer, that of `RL.CHECK` seven fields in some sixty bytes."

func memoryCases() []Case {
	pair := func(name, title string, t traffic, figures ...want) Case {
		return compare(name, title, aboutINCR, gate{traffic: t}.side(), incr(t), figures...)
	}
	return []Case{
		pair("memory-p16", "memory store, pipeline 16", uniform(50, 16),
			throughput(atLeast(1.5)), serverCPU(atMost(0.65))),
		pair("memory-p64", "memory store, pipeline 64", uniform(50, 64),
			throughput(atLeast(1.8)), serverCPU(atMost(0.55))),
		pair("memory-p1", "memory store, pipeline 1", uniform(50, 1),
			throughput(atLeast(1.05)), serverCPU(atMost(0.95))),
		pair("memory-million-p16", "memory store, 1M tenants, pipeline 16", every(manyTenants, uniform(50, 16)),
			throughput(atLeast(1.3)), serverCPU(nil)),
	}
}

// aboutDirect is the explanation of all comparisons with the script.
const aboutDirect = "Exact decisions on one Redis beside the same client sending the cheapest script of one decision " +
	"(`bench/gcra.lua`) to it. The script replies one integer, `RL.CHECK` seven fields."

func exactCases() []Case {
	pair := func(name, title string, t traffic, figures ...want) Case {
		return compare(name, title, aboutDirect, gate{kind: onRedis, traffic: t}.side(), gcra(onRedis, t), figures...)
	}
	levels := func(name, title, place, limits string, goal float64) Case {
		return compare(name, title, "The cost of a second bucket, "+place+", for the store. The yardstick is Limitgate with one level.",
			gate{kind: onRedis, limits: limits, op: operation, traffic: uniform(50, 16)}.side(),
			gate{name: "limitgate, one level", kind: onRedis, op: operation, traffic: uniform(50, 16)}.side(),
			storeCPU(atMost(goal)), throughput(nil))
	}
	return []Case{
		pair("redis-p16", "one Redis, pipeline 16", uniform(50, 16),
			throughput(atLeast(2.9)), serverCPU(atMost(0.5)), storeCPU(atMost(0.33)), proxyMicros(atMost(0.9)), p99Ratio(atMost(0.6))),
		pair("redis-p1", "one Redis, pipeline 1, 50 connections", uniform(50, 1),
			throughput(atLeast(0.92)), storeCPU(atMost(0.42)), proxyMicros(atMost(7.5))),
		pair("redis-p1-500", "one Redis, pipeline 1, 500 connections", uniform(500, 1),
			throughput(atLeast(1.15)), storeCPU(atMost(0.30)), proxyMicros(nil)),
		levels("two-levels", "two levels, (tenant, op) and (tenant), pipeline 16", "a key of its own", twoLimits, 1.9),
		levels("two-levels-fixed", "two levels, (tenant, declared op) and (tenant), pipeline 16", "a field of the first one's key", fixedLimits, 1.15),
		pair("redis-zipf-p16", "one Redis, Zipf(1.1), pipeline 16", zipf(50, 16),
			throughput(atLeast(3.2)), serverCPU(nil), storeMicros(nil)),
	}
}

// aboutCluster is the explanation of all comparisons on the cluster.
const aboutCluster = "Exact decisions on a cluster of three primaries beside the script sent to it by a client that " +
	"knows the slots. Each connection of that client leads to one node, so no pipeline is split, and every node has the " +
	"same number of connections whatever its share of the keys."

func clusterCases() []Case {
	pair := func(name, title string, t traffic, figures ...want) Case {
		return compare(name, title, aboutCluster, gate{kind: onCluster, traffic: t}.side(), gcra(onCluster, t), figures...)
	}
	return []Case{
		pair("cluster-p16", "cluster, pipeline 16", uniform(50, 16),
			throughput(atLeast(1.25)), serverCPU(nil), storeCPU(nil)),
		pair("cluster-p64", "cluster, pipeline 64", uniform(50, 64),
			throughput(atLeast(1.8)), serverCPU(nil), storeCPU(nil)),
		pair("cluster-p1", "cluster, pipeline 1, 50 connections", uniform(50, 1),
			throughput(atLeast(0.75)), storeCPU(nil), proxyMicros(nil)),
		pair("cluster-p1-500", "cluster, pipeline 1, 500 connections", uniform(500, 1),
			throughput(atLeast(1.05)), storeCPU(nil), proxyMicros(nil)),
		pair("cluster-zipf-p16", "cluster, Zipf(1.1), pipeline 16", zipf(50, 16),
			throughput(atLeast(1.7)), serverCPU(nil), storeMicros(nil)),
	}
}

func latencyCases() []Case {
	const about = "The latency that the hop adds to the script sent to Redis over as many connections, below saturation."
	pair := func(name, title string, t traffic, p50, p99 float64) Case {
		return compare(name, title, about, gate{kind: onRedis, traffic: t}.side(), gcra(onRedis, t),
			addedP50(atMost(p50)), addedP99(atMost(p99)))
	}
	return []Case{
		pair("latency-1", "added latency, 1 connection, pipeline 1", uniform(1, 1), 60, 120),
		pair("latency-16", "added latency, 16 connections, pipeline 1", uniform(16, 1), 105, 180),
	}
}
