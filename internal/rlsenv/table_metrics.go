package rlsenv

// noStatsd is the reason why variables of statsd are not needed.
const noStatsd = "metrics are not sent to statsd; set USE_PROMETHEUS=true, and let Prometheus read them"

func metricVariables(d *draft) []variable {
	return []variable{
		{"USE_PROMETHEUS", "false", toggle(&d.prometheusOn), taken, "serve metrics with ratelimit's names"},
		{"PROMETHEUS_ADDR", ":9090", listenAddress(&d.prometheusAddr), taken, "their address"},
		{"PROMETHEUS_PATH", "/metrics", urlPath(new(string)), notNeeded, "the path of metrics is /metrics"},
		{
			"PROMETHEUS_MAPPER_YAML", "", anyText(new(string)), notNeeded,
			"metrics have the names of ratelimit's built-in mapper; rename them where Prometheus reads them",
		},
		{
			"PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS", "false", toggle(new(bool)), notNeeded,
			"response times are in seconds, always",
		},
		{"DISABLE_STATS", "false", toggle(&d.statsOff), taken, "no metrics at `PROMETHEUS_ADDR`"},
		{"USE_STATSD", "true", silent(toggle(new(bool))), notNeeded, noStatsd},
		{"STATSD_HOST", "localhost", anyText(new(string)), notNeeded, noStatsd},
		{"STATSD_PORT", "8125", number(new(int)), notNeeded, noStatsd},
		{"STATS_FLUSH_INTERVAL", "10s", anyDuration(), notNeeded, "metrics are read when Prometheus asks"},
		{"USE_DOG_STATSD", "false", toggle(new(bool)), notNeeded, noStatsd},
		{"USE_DOG_STATSD_MOGRIFIERS", "", anyText(new(string)), notNeeded, noStatsd},
		{"EXTRA_TAGS", "", tags(), notNeeded, "metrics get no further labels; add them where Prometheus reads them"},
	}
}

// silent gives all values of v one meaning, so that none causes a notice: most deployments set
// USE_STATSD=false and RUNTIME_IGNOREDOTFILES=true, and the defaults are the opposite.
func silent(v value) value {
	read := v.read
	v.read = func(text string) (any, bool) {
		_, ok := read(text)
		return nil, ok
	}
	return v
}
