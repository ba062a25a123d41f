package bench

import "github.com/limitgate/limitgate/internal/load"

// floodTenants is how many tenants have used up their limit and go on asking.
const floodTenants = 100

// floodLimit is used up by one request, for a day.
const floodLimit = `version: 1
default_plan: bench
plans:
  bench:
    - {id: tenant, by: [tenant], rate: 1/d, burst: 1, on_error: open}
`

// bucketCommands are those by which scripts read and write buckets.
var bucketCommands = []string{
	"get", "mget", "getex", "set", "mset", "setex", "psetex", "incrby", "decrby", "incr", "decr",
	"hget", "hmget", "hset", "hmset", "hincrby", "hgetall",
}

// bucketWork is how often the store worked on buckets, for each bucket and
// second.
func bucketWork(goal *Goal) want {
	return want{"reads and writes in Redis per bucket and second", PerSecond, func(a, _ *sample) float64 {
		n := int64(0)
		for _, command := range bucketCommands {
			n += a.calls[command]
		}
		return float64(n) / a.seconds / floodTenants
	}, goal}
}

// scriptCalls is how many scripts the store ran in a second.
func scriptCalls() want {
	return want{"script calls", PerSecond, func(a, _ *sample) float64 {
		n := a.calls["evalsha"] + a.calls["eval"] + a.calls["fcall"]
		return float64(n) / a.seconds
	}, nil}
}

func deniedCases() []Case {
	flood := traffic{conns: 50, pipeline: 16, keys: func() load.Keys { return load.Uniform(floodTenants) }}
	return []Case{compare("denied-flood", "flood of denied requests, pipeline 16",
		"100 tenants that have used up their limit go on asking. The yardstick is the same flood on the memory store, "+
			"whose speed is reached when the store is not asked; 0.95 of it counts as the same. What Redis does for it is "+
			"counted by its `INFO commandstats`: reads and writes of buckets, whatever script does them.",
		gate{kind: onRedis, limits: floodLimit, traffic: flood, verdicts: denied, counted: true}.side(),
		gate{name: "limitgate, memory store", limits: floodLimit, traffic: flood, verdicts: denied}.side(),
		bucketWork(atMost(1)), throughput(atLeast(0.95)), scriptCalls())}
}
