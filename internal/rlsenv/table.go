package rlsenv

import (
	"log/slog"
	"slices"
	"strings"
)

// variable is a row of the table of variables.
type variable struct {
	name string
	// initial is ratelimit's default.
	initial string
	value   value
	fate    fate
	// text is Row.Meaning, and the notice about a value that is not the default, unless the
	// variable is taken.
	text string
}

// fate is what becomes of a variable.
type fate int

const (
	// taken variables have the meaning that they have in ratelimit.
	taken fate = iota
	// notNeeded variables have no effect, and decisions are the same without them.
	notNeeded
	// refused variables may have no value but the default.
	refused
)

func (f fate) String() string {
	return [...]string{taken: "taken", notNeeded: "not needed", refused: "refused"}[f]
}

// variables returns the table. Its values are stored in d.
func variables(d *draft) []variable {
	return slices.Concat(
		listenVariables(d), configVariables(d), xdsVariables(d), answerVariables(d), counterVariables(d),
		redisVariables(d), connectionVariables(), perSecondVariables(), memcacheVariables(),
		metricVariables(d), logVariables(d),
	)
}

func listenVariables(d *draft) []variable {
	return []variable{
		{"HOST", "0.0.0.0", host(&d.host), taken, "host of the HTTP address"},
		{"PORT", "8080", port(&d.port), taken, "port of the HTTP address: `/json` and `/healthcheck`"},
		{"GRPC_HOST", "0.0.0.0", host(&d.grpcHost), taken, "host of the gRPC address"},
		{"GRPC_PORT", "8081", port(&d.grpcPort), taken, "port of the gRPC address"},
		{"GRPC_UDS", "", anyText(&d.grpcUDS), taken, "Unix socket in place of the gRPC address; the path is absolute"},
		{"DEBUG_HOST", "0.0.0.0", host(&d.debugHost), taken, "host of the debug address; without it 127.0.0.1, because the limits are shown there"},
		{"DEBUG_PORT", "6070", port(&d.debugPort), taken, "port of the debug address: `/rlconfig` and `/stats`"},
		{"GRPC_MAX_CONNECTION_AGE", "24h", elapse(&d.MaxConnectionAge), taken, "how long a gRPC connection lives"},
		{"GRPC_MAX_CONNECTION_AGE_GRACE", "1h", elapse(&d.MaxConnectionAgeGrace), taken, "how long its calls may take to end after that"},
		{"GRPC_SERVER_USE_TLS", "false", toggle(&d.grpcUseTLS), taken, "TLS on the gRPC address; it needs a certificate and its key"},
		{"GRPC_SERVER_TLS_CERT", "", anyText(&d.grpcTLS.Cert), taken, "its certificate, read again on changes"},
		{"GRPC_SERVER_TLS_KEY", "", anyText(&d.grpcTLS.Key), taken, "the key of the certificate"},
		{"GRPC_CLIENT_TLS_CACERT", "", anyText(&d.grpcTLS.ClientCA), taken, "authorities of the certificates that clients then need"},
		{"GRPC_CLIENT_TLS_SAN", "", anyText(&d.grpcTLS.ClientSAN), taken, "DNS name that these certificates must have"},
		{
			"GRPC_SERVER_TLS_CA_CERT", "", anyText(new(string)), notNeeded,
			"Envoy Gateway sets it, and ratelimit does not read it either; GRPC_CLIENT_TLS_CACERT makes clients need a certificate",
		},
	}
}

func configVariables(d *draft) []variable {
	return []variable{
		{
			"CONFIG_TYPE", "FILE", choice(&d.fromXDS, "FILE or GRPC_XDS_SOTW", "FILE", map[string]bool{"FILE": false, "GRPC_XDS_SOTW": true}),
			taken, "`FILE` reads limits from files, `GRPC_XDS_SOTW` from an xDS server",
		},
		{"RUNTIME_ROOT", "/srv/runtime_data/current", anyText(&d.root), taken, "directory of the limits, with the next two below it"},
		{"RUNTIME_SUBDIRECTORY", "", anyText(&d.runtimeSub), taken, "directory in it"},
		{"RUNTIME_APPDIRECTORY", "config", anyText(&d.runtimeApp), taken, "directory in that; all files below it are limits"},
		{"RUNTIME_IGNOREDOTFILES", "false", silent(toggle(new(bool))), notNeeded, "files whose names begin with a dot are skipped, always"},
		{"RUNTIME_WATCH_ROOT", "true", toggle(&d.watchRoot), taken, "limits change with the symbolic link and with the files, always"},
		{"MERGE_DOMAIN_CONFIG", "false", toggle(&d.MergeDomains), taken, "whether several files may have limits of one domain"},
		{"FORCE_START_WITHOUT_INITIAL_CONFIG", "false", toggle(&d.ForceStart), taken, "serve requests before there are limits"},
		{"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", "false", toggle(&d.HealthyWithConfig), taken, "healthy only after limits were read; else also before, if it may start without"},
	}
}

// xdsPauses is the reason why other variables of pauses are not needed.
const xdsPauses = "pauses between connections grow and vary, always; XDS_CLIENT_BACKOFF_INITIAL_INTERVAL and XDS_CLIENT_BACKOFF_MAX_INTERVAL bound them"

func xdsVariables(d *draft) []variable {
	x, t := &d.xds, &d.xdsTLS
	return []variable{
		{"CONFIG_GRPC_XDS_SERVER_URL", "localhost:18000", anyText(&x.Server), taken, "address of the xDS server"},
		{"CONFIG_GRPC_XDS_NODE_ID", "default", anyText(&x.NodeID), taken, "id of the node"},
		{"CONFIG_GRPC_XDS_NODE_METADATA", "", anyText(&d.xdsMetadata), taken, "metadata of the node, `NAME=VALUE,NAME=VALUE`"},
		{"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", "", headers(&x.Headers), taken, "headers of the stream, `NAME:VALUE,NAME:VALUE`"},
		{"CONFIG_GRPC_XDS_SERVER_USE_TLS", "false", toggle(&d.xdsUseTLS), taken, "TLS to the xDS server"},
		{"CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "", anyText(&t.Cert), taken, "certificate for the xDS server, with its key"},
		{"CONFIG_GRPC_XDS_CLIENT_TLS_KEY", "", anyText(&t.Key), taken, "the key of the certificate"},
		{"CONFIG_GRPC_XDS_SERVER_TLS_CACERT", "", anyText(&t.CA), taken, "authorities of the server's certificate, in place of the system's"},
		{"CONFIG_GRPC_XDS_SERVER_TLS_SAN", "", anyText(&t.ServerName), taken, "name in the server's certificate, if it is not the host"},
		{"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", "10s", elapse(&x.MinBackoff), taken, "shortest pause between connections to the server"},
		{"XDS_CLIENT_BACKOFF_MAX_INTERVAL", "60s", elapse(&x.MaxBackoff), taken, "longest pause between them"},
		{"XDS_CLIENT_BACKOFF_RANDOM_FACTOR", "0.5", anyDecimal(new(float64)), notNeeded, xdsPauses},
		{"XDS_CLIENT_BACKOFF_JITTER", "true", toggle(new(bool)), notNeeded, xdsPauses},
		{"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", "3s", anyDuration(), notNeeded, xdsPauses},
		{"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", "0", size(&x.MaxMessage), taken, "largest message; 0 is the default of gRPC, 4 MiB"},
	}
}

func answerVariables(d *draft) []variable {
	return []variable{
		{"SHADOW_MODE", "false", toggle(&d.Shadow), taken, "every answer admits the request; the statuses of its descriptors stay"},
		{"QUOTA_MODE", "false", toggle(&d.Quota), taken, "all limits are quotas"},
		{"LIMIT_RESPONSE_HEADERS_ENABLED", "false", toggle(&d.responseOn), taken, "headers about the limit, for the client"},
		{"LIMIT_LIMIT_HEADER", "RateLimit-Limit", anyText(&d.response.Limit), taken, "name of the header with the limit"},
		{"LIMIT_REMAINING_HEADER", "RateLimit-Remaining", anyText(&d.response.Remaining), taken, "name of the header with the units that remain"},
		{"LIMIT_RESET_HEADER", "RateLimit-Reset", anyText(&d.response.Reset), taken, "name of the header with the seconds until the limit resets"},
		{"LIMIT_REQUEST_HEADERS_ENABLED", "false", toggle(&d.requestOn), taken, "the same headers, for the upstream"},
		{"LIMIT_REQUEST_LIMIT_HEADER", "RateLimit-Limit", anyText(&d.request.Limit), taken, "name of the header with the limit"},
		{"LIMIT_REQUEST_REMAINING_HEADER", "RateLimit-Remaining", anyText(&d.request.Remaining), taken, "name of the header with the units that remain"},
		{"LIMIT_REQUEST_RESET_HEADER", "RateLimit-Reset", anyText(&d.request.Reset), taken, "name of the header with the seconds until the limit resets"},
		{"RESPONSE_DYNAMIC_METADATA", "false", toggle(&d.Metadata), taken, "dynamic metadata in answers"},
		{"NEAR_LIMIT_RATIO", "0.8", fraction(&d.NearLimit), taken, "part of a limit above which hits count as `near_limit`"},
	}
}

func counterVariables(d *draft) []variable {
	return []variable{
		{
			"BACKEND_TYPE", "redis", choice(new(string), "redis or memcache", "redis", map[string]string{"": "redis", "redis": "redis", "memcache": "memcache"}),
			refused, "counters are kept in Redis and not in memcached; set BACKEND_TYPE=redis and REDIS_URL",
		},
		{"CACHE_KEY_PREFIX", "", anyText(&d.KeyPrefix), taken, "part of the names of counters"},
		{
			"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "false", toggle(new(bool)), notNeeded,
			"a request that is denied takes nothing of any limit",
		},
		{"LOCAL_CACHE_SIZE_IN_BYTES", "0", number(new(int)), notNeeded, "denials are cached by bucket, always"},
		{"EXPIRATION_JITTER_MAX_SECONDS", "300", number(new(int)), notNeeded, "a counter expires when it has no effect any more"},
	}
}

func logVariables(d *draft) []variable {
	return []variable{
		{
			"LOG_LEVEL", "WARN", foldedChoice(&d.LogLevel, "PANIC, FATAL, ERROR, WARN, INFO, DEBUG or TRACE", "WARN", map[string]slog.Level{
				"panic": slog.LevelError, "fatal": slog.LevelError, "error": slog.LevelError, "warn": slog.LevelWarn,
				"warning": slog.LevelWarn, "info": slog.LevelInfo, "debug": slog.LevelDebug, "trace": slog.LevelDebug,
			}), taken, "least level that is logged; `trace` is `debug`, `panic` and `fatal` are `error`",
		},
		{
			"LOG_FORMAT", "text", parsed(&d.LogFormat, "a format of logs", "json", logFormat),
			taken, "`json`; anything else is text. The fields have Limitgate's names",
		},
		{"TRACING_ENABLED", "false", toggle(&d.tracing), taken, "spans of requests whose callers trace them"},
		{protocolName, "http", anyText(&d.tracesProtocol), taken, "`http`; with `grpc` no spans are exported, and a notice says so"},
		{collectorName, "", anyText(&d.collector), taken, "collector of spans, `https://localhost:4318` by default; other `OTEL_EXPORTER_OTLP_*` are read too"},
		{tracesName, "", anyText(&d.tracesTarget), taken, "the same with its whole path, in place of the other"},
		{"TRACING_SERVICE_NAME", "RateLimit", anyText(new(string)), notNeeded, "spans have the service name limitgate"},
		{"TRACING_SERVICE_NAMESPACE", "", anyText(new(string)), notNeeded, "spans have no namespace; set OTEL_RESOURCE_ATTRIBUTES=service.namespace=NAME"},
		{"TRACING_SERVICE_INSTANCE_ID", "", anyText(new(string)), notNeeded, "each process has an instance id of its own"},
		{"TRACING_SAMPLING_RATE", "1", anyDecimal(new(float64)), notNeeded, "the callers decide which of their requests are traced"},
	}
}

// logFormat reads a format as ratelimit does, which knows one word.
func logFormat(text string) (string, bool) {
	if strings.EqualFold(text, "json") {
		return "json", true
	}
	return "text", true
}
