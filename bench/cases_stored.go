package bench

import (
	"math"
	"strings"

	"github.com/limitgate/limitgate/internal/load"
)

// The cases here count the work of the store for decisions that mostly need none: those
// from the deny cache and from leases.

// floodTenants is the number of tenants that have used up their limit and go on sending
// requests.
const floodTenants = 100

// floodLimit is used up by one request, for a day.
const floodLimit = `version: 1
default_plan: bench
plans:
  bench:
    - {id: tenant, by: [tenant], rate: 1/d, burst: 1, on_error: open}
`

// leased is oneLimit with a lease.
func leased(lease string) string {
	return strings.Replace(oneLimit, "on_error: open", "on_error: open, lease: "+lease, 1)
}

// bucketWrites are the commands by which scripts write a bucket.
var bucketWrites = []string{
	"set", "setrange", "setex", "psetex", "incrby", "decrby", "incr", "decr", "hset", "hmset", "hincrby",
}

// bucketCalls returns how often the store read or wrote a bucket in a round: the keys that any
// command read, and the commands that write one.
func (s *sample) bucketCalls() float64 {
	n := s.commands[keysRead].calls
	for _, command := range bucketWrites {
		n += s.commands[command].calls
	}
	return float64(n)
}

func deniedCases() []Case {
	flood := traffic{conns: 50, pipeline: 16, keys: func() load.Keys { return load.Uniform(floodTenants) }}
	return []Case{compare("denied-flood", "flood of denied requests, pipeline 16",
		"100 tenants that have used up their limit keep sending checks. The yardstick is the same flood on the memory "+
			"store; 0.95 of its speed counts as equal. The keys that Redis read, and the commands that wrote one, are from its "+
			"`INFO`. With one read a second, a round has one read of a bucket for each second that begins in it.",
		gate{kind: onRedis, limits: floodLimit, traffic: flood, verdicts: denied}.side(),
		gate{name: "limitgate, memory store", limits: floodLimit, traffic: flood, verdicts: denied}.side(),
		want{"reads and writes in Redis per bucket and begun second", Count, func(a, _ *sample) float64 {
			return a.bucketCalls() / floodTenants / math.Ceil(a.seconds)
		}, atMost(1.1)},
		throughput(atLeast(0.95)),
		want{"script calls", PerSecond, func(a, _ *sample) float64 { return float64(a.scripts().calls) / a.seconds }, nil})}
}

func leaseCases() []Case {
	const about = "All of a tenant's requests reach the same proxy, which takes units ahead. The yardstick is Limitgate without " +
		"a lease on the same Redis, where equal checks of one batch are one call already. The keys that " +
		"Redis read for each decision, and the commands that wrote one, are from its `INFO`."
	pair := func(name, title, lease string, t traffic) Case {
		return compare(name, title, about,
			gate{name: "limitgate, leases", kind: onRedis, limits: leased(lease), traffic: t}.side(),
			gate{name: "limitgate, exact", kind: onRedis, traffic: t}.side(),
			want{"decided from leases", Percent, func(a, _ *sample) float64 {
				return 100 * float64(a.sources["lease"]) / float64(a.decisions)
			}, atLeast(80)},
			want{"reads and writes in Redis per decision", Ratio, func(a, b *sample) float64 {
				return a.bucketCalls() / float64(a.decisions) / (b.bucketCalls() / float64(b.decisions))
			}, atMost(0.2)},
			throughput(nil), serverCPU(nil))
	}
	return []Case{
		pair("lease-10", "leases of 10 units, uniform, pipeline 16", "{size: 10}", uniform(50, 16)),
		pair("lease-auto-zipf", "leases of measured size, Zipf(1.1), pipeline 16", "auto", zipf(50, 16)),
		pair("lease-auto-hot", "a lease of measured size on one hot bucket, pipeline 16", "auto", hot(50, 16)),
	}
}
