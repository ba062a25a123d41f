package bench

import "strconv"

func redisBenchmarkCases() []Case {
	const about = "The same by `redis-benchmark`, so that anyone can check it. Its client is heavier than the load generator: " +
		"where both sides are fast it is itself the limit, which brings the ratio near 1. It does not look at verdicts. On the cluster it is not used: with `--cluster` its clock has steps of 250 ms."
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
