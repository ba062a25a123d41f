package rlsenv

import "time"

func redisVariables(d *draft) []variable {
	t := &d.redisTLS
	return []variable{
		{"REDIS_TYPE", "SINGLE", foldedChoice(&d.redisType, "SINGLE, CLUSTER or SENTINEL", "SINGLE", map[string]redisType{
			"single": single, "cluster": redisCluster, "sentinel": redisSentinel,
		}), taken, "`SINGLE`, `CLUSTER` or `SENTINEL`"},
		{
			"REDIS_SOCKET_TYPE", "unix", choice(&d.redisSocket, "tcp or unix", "tcp", map[string]string{"tcp": "tcp", "unix": "unix"}), taken,
			"`tcp`; `unix` is refused, but for `CLUSTER` and `SENTINEL`, which use TCP",
		},
		{
			urlName, "/var/run/nutcracker/ratelimit.sock", anyText(&d.redisURL), taken,
			"`host:port` or `redis://user:password@host:port/DB`, nodes of a cluster, or a master's name and its Sentinels",
		},
		{authName, "", anyText(&d.auth), taken, "password, or `user:password`"},
		{sentinelAuth, "", anyText(&d.otherAuth), taken, "login of the Sentinels, which has to be that of `REDIS_AUTH`"},
		{"REDIS_TLS", "false", toggle(&d.redisUseTLS), taken, "TLS to Redis and Sentinels"},
		{"REDIS_TLS_CLIENT_CERT", "", anyText(&t.Cert), taken, "certificate for Redis, with its key"},
		{"REDIS_TLS_CLIENT_KEY", "", anyText(&t.Key), taken, "the key of the certificate"},
		{"REDIS_TLS_CACERT", "", anyText(&t.CA), taken, "authorities of Redis' certificates, in place of the system's"},
		{
			"REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", "false", toggle(new(bool)), refused,
			"names in Redis' certificates are checked, always; leave it out, and set LIMITGATE_REDIS_TLS_SERVER_NAME to the name that they have",
		},
		{"REDIS_TIMEOUT", "10s", elapse(new(time.Duration)), notNeeded, "a decision waits 5 ms at most, or LIMITGATE_DECISION_TIMEOUT"},
	}
}

// The reasons why variables of a family are not needed.
const (
	onePipeline = "each proxy has a pipelined connection to each node of Redis, and no pool"
	noWaiting   = "a proxy starts without Redis, decides without it, and connects when it can"
	oneStore    = "limits per second are in the Redis of all limits"
	noMemcache  = "counters are in Redis"
)

func connectionVariables() []variable {
	return []variable{
		{"REDIS_POOL_SIZE", "10", number(new(int)), notNeeded, onePipeline},
		{"REDIS_POOL_ON_EMPTY_BEHAVIOR", "WAIT", anyText(new(string)), notNeeded, onePipeline},
		{"REDIS_POOL_ON_EMPTY_WAIT_DURATION", "1s", anyDuration(), notNeeded, onePipeline},
		{"REDIS_PIPELINE_WINDOW", "0", anyDuration(), notNeeded, onePipeline},
		{"REDIS_PIPELINE_LIMIT", "0", number(new(int)), notNeeded, onePipeline},
		{"REDIS_CLUSTER_PIPELINE_PARALLELISM", "1", number(new(int)), notNeeded, onePipeline},
		{"REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR", "false", toggle(new(bool)), notNeeded, "a node that is no master any more gets no calls, always"},
		{"REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", "false", toggle(new(bool)), notNeeded, "a proxy decides without Redis too, so it stays healthy"},
		{"REDIS_STARTUP_INITIAL_INTERVAL", "1s", anyDuration(), notNeeded, noWaiting},
		{"REDIS_STARTUP_MAX_INTERVAL", "30s", anyDuration(), notNeeded, noWaiting},
		{"REDIS_STARTUP_MAX_ELAPSED_TIME", "0", anyDuration(), notNeeded, noWaiting},
	}
}

func perSecondVariables() []variable {
	return []variable{
		{
			"REDIS_PERSECOND", "false", toggle(new(bool)), refused,
			"limits per second cannot have a Redis of their own; leave it out, and let REDIS_URL name a Redis for all limits",
		},
		{"REDIS_PERSECOND_SOCKET_TYPE", "unix", anyText(new(string)), notNeeded, oneStore},
		{"REDIS_PERSECOND_TYPE", "SINGLE", anyText(new(string)), notNeeded, oneStore},
		{"REDIS_PERSECOND_URL", "/var/run/nutcracker/ratelimitpersecond.sock", anyText(new(string)), notNeeded, oneStore},
		{"REDIS_PERSECOND_POOL_SIZE", "10", number(new(int)), notNeeded, oneStore},
		{"REDIS_PERSECOND_AUTH", "", anyText(new(string)), notNeeded, oneStore},
		{"REDIS_PERSECOND_SENTINEL_AUTH", "", anyText(new(string)), notNeeded, oneStore},
		{"REDIS_PERSECOND_TLS", "false", toggle(new(bool)), notNeeded, oneStore},
		{"REDIS_PERSECOND_TIMEOUT", "10s", anyDuration(), notNeeded, oneStore},
		{"REDIS_PERSECOND_PIPELINE_WINDOW", "0", anyDuration(), notNeeded, oneStore},
		{"REDIS_PERSECOND_PIPELINE_LIMIT", "0", number(new(int)), notNeeded, oneStore},
		{"REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM", "1", number(new(int)), notNeeded, oneStore},
		{"REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR", "WAIT", anyText(new(string)), notNeeded, oneStore},
		{"REDIS_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION", "1s", anyDuration(), notNeeded, oneStore},
	}
}

func memcacheVariables() []variable {
	return []variable{
		{"MEMCACHE_HOST_PORT", "", anyText(new(string)), notNeeded, noMemcache},
		{"MEMCACHE_MAX_IDLE_CONNS", "2", number(new(int)), notNeeded, noMemcache},
		{"MEMCACHE_SRV", "", anyText(new(string)), notNeeded, noMemcache},
		{"MEMCACHE_SRV_REFRESH", "0", anyDuration(), notNeeded, noMemcache},
		{"MEMCACHE_TLS", "false", toggle(new(bool)), notNeeded, noMemcache},
		{"MEMCACHE_TLS_CLIENT_CERT", "", anyText(new(string)), notNeeded, noMemcache},
		{"MEMCACHE_TLS_CLIENT_KEY", "", anyText(new(string)), notNeeded, noMemcache},
		{"MEMCACHE_TLS_CACERT", "", anyText(new(string)), notNeeded, noMemcache},
		{"MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION", "false", toggle(new(bool)), notNeeded, noMemcache},
	}
}

// anyDuration parses a duration that has no effect.
func anyDuration() value { return duration(new(time.Duration)) }
