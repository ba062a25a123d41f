package bench

import (
	"context"
)

// callers is the number of goroutines of a service that decide at once.
const callers = 50

// redisRate is a service that limits with the library redis_rate.
func redisRate() side {
	return side{name: "redis_rate", open: func(ctx context.Context, l *lab) (driver, error) {
		store, err := l.single(ctx)
		if err != nil {
			return nil, err
		}
		job := libraryJob{Library: libraryRedisRate, Addr: store.nodes[0].Addr, Callers: callers, Tenants: tenants}
		return startLibrary(job, parts{store: store.pids()}, nil)
	}}
}

// goService is the same service with limitgate, called by its Redis client.
func goService() side {
	return side{name: "limitgate, by go-redis", open: func(ctx context.Context, l *lab) (driver, error) {
		store, err := l.single(ctx)
		if err != nil {
			return nil, err
		}
		proxy, err := l.start(oneLimit, store, patience...)
		if err != nil {
			return nil, err
		}
		job := libraryJob{Library: libraryGoRedis, Addr: proxy.Addr, Callers: callers, Tenants: tenants}
		d, err := startLibrary(job, parts{proxy: []int{proxy.PID()}, store: store.pids()}, proxy)
		if err != nil {
			_ = proxy.Close()
			return nil, err
		}
		return d, nil
	}}
}

func libraryCases() []Case {
	const about = "`go-redis/redis_rate` v10 in a process of its own, 50 goroutines, beside Limitgate on the same Redis asked by 50 " +
		"connections, pipeline 1. The whole cost of a decision is the CPU of client, proxy and Redis. "
	return []Case{
		compare("redis-rate", "redis_rate as a library, beside a light client of Limitgate",
			about+"Limitgate's client here is the load generator, which costs as little as a Redis client can. "+
				"For one process at pipeline 1, a library that pipelines by itself (rueidis) is cheaper than any hop. A proxy "+
				"gains with many processes, with checks that it coalesces, and in languages without such a library.",
			gate{kind: onRedis, traffic: uniform(callers, 1)}.side(), redisRate(),
			totalCPU(atMost(0.62)), throughput(atLeast(1.4)), storeCPU(nil)),
		compare("redis-rate-go", "redis_rate as a library, beside Limitgate asked by go-redis",
			about+"Limitgate's client here is go-redis, on which redis_rate is built too.",
			goService(), redisRate(),
			totalCPU(nil), throughput(nil), storeCPU(nil)),
	}
}
