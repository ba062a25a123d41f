package bench

import "strconv"

func redisBenchmarkCases() []Case {
	const about = "The same by `redis-benchmark`, so that anyone can check it. Its client is heavier than the load generator: " +
		"it has one thread, parses every reply, and is itself the limit near 85,000 a second at pipeline 1 and 1.1 million " +
		"above. It does not look at verdicts."
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
