package bench

import "strconv"

func redisBenchmarkCases() []Case {
	const about = "The same comparison by `redis-benchmark`, which anyone can repeat. Its client costs more than the load generator: " +
		"where both sides are fast the client is the bottleneck, and the ratio is near 1. It ignores verdicts. There is no such case on the " +
		"cluster, because with `--cluster` its clock has steps of 250 ms."
	check := []string{"RL.CHECK", "KEY", "-", "-", "1"}
	script := append([]string{"EVALSHA", gcraSHA, "1", "KEY"}, gcraArgs()...)
	var cases []Case
	for _, pipeline := range []int{1, 16} {
		t := uniform(50, pipeline)
		depth := strconv.Itoa(pipeline)
		cases = append(cases,
			compare("redis-benchmark-memory-p"+depth, "by redis-benchmark: memory store, pipeline "+depth, about,
				byRedisBenchmark("limitgate", inMemory, true, t, check...),
				byRedisBenchmark("redis INCR", onRedis, false, t, "INCR", "KEY"),
				throughput(nil), serverCPU(nil)),
			compare("redis-benchmark-redis-p"+depth, "by redis-benchmark: one Redis, pipeline "+depth, about,
				byRedisBenchmark("limitgate", onRedis, true, t, check...),
				byRedisBenchmark("EVALSHA to Redis", onRedis, false, t, script...),
				throughput(nil), serverCPU(nil), storeCPU(nil)))
	}
	return cases
}
