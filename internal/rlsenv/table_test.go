package rlsenv

import (
	"log/slog"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// row is a variable of ratelimit in its settings.go, and what Parse makes of it.
type row struct {
	name, initial string
	// with are other variables, without which this one has no effect.
	with []string
	// get returns the setting of a variable that is taken, usual its value by default, and want
	// with text. Other variables have text alone.
	get         func(s *Settings) any
	usual, want any
	text        string
	// wrong are values of another form.
	wrong []string
	// idle reports that the default takes the effect of with away.
	idle bool
	// silent reports that no value of a variable that is not taken causes a notice.
	silent bool
}

var rows = slices.Concat(listenRows, sourceRows, answerRows, redisRows, otherRows)

var (
	grpcTLS = []string{"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=/c", "GRPC_SERVER_TLS_KEY=/k", "GRPC_CLIENT_TLS_CACERT=/ca"}
	fromXDS = []string{"CONFIG_TYPE=GRPC_XDS_SOTW"}
	xdsTLS  = append(slices.Clone(fromXDS), "CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT=/c", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY=/k")
)

var listenRows = []row{
	{name: "HOST", initial: "0.0.0.0", get: func(s *Settings) any { return s.HTTP }, usual: "0.0.0.0:8080", text: "::", want: "[::]:8080", wrong: []string{"a:1"}},
	{name: "PORT", initial: "8080", get: func(s *Settings) any { return s.HTTP }, usual: "0.0.0.0:8080", text: "0x50", want: "0.0.0.0:80", wrong: []string{"65536"}},
	{name: "GRPC_HOST", initial: "0.0.0.0", get: func(s *Settings) any { return s.GRPC }, usual: "0.0.0.0:8081", text: "", want: ":8081", wrong: []string{"a b"}},
	{name: "GRPC_PORT", initial: "8081", get: func(s *Settings) any { return s.GRPC }, usual: "0.0.0.0:8081", text: "1", want: "0.0.0.0:1", wrong: []string{"tcp://10.0.0.1:8081", "", "8081/tcp", "1e3"}},
	{name: "GRPC_UDS", get: func(s *Settings) any { return s.GRPC }, usual: "0.0.0.0:8081", text: "/run/x.sock", want: "unix:/run/x.sock", wrong: []string{"x.sock"}},
	{name: "DEBUG_HOST", initial: "0.0.0.0", idle: true, get: func(s *Settings) any { return s.Debug }, usual: "127.0.0.1:6070", text: "localhost", want: "localhost:6070", wrong: []string{"/"}},
	{name: "DEBUG_PORT", initial: "6070", get: func(s *Settings) any { return s.Debug }, usual: "127.0.0.1:6070", text: "0", want: "127.0.0.1:0", wrong: []string{"-1"}},
	{name: "GRPC_MAX_CONNECTION_AGE", initial: "24h", get: func(s *Settings) any { return s.MaxConnectionAge }, usual: 24 * time.Hour, text: "90m", want: 90 * time.Minute, wrong: []string{"-1s"}},
	{name: "GRPC_MAX_CONNECTION_AGE_GRACE", initial: "1h", get: func(s *Settings) any { return s.MaxConnectionAgeGrace }, usual: time.Hour, text: "0", want: time.Duration(0), wrong: []string{"1"}},
	{name: "GRPC_SERVER_USE_TLS", initial: "false", with: grpcTLS[1:3], idle: true, get: func(s *Settings) any { return s.GRPCTLS != nil }, usual: false, text: "T", want: true, wrong: []string{"yes"}},
	{name: "GRPC_SERVER_TLS_CERT", with: grpcTLS, get: func(s *Settings) any { return s.GRPCTLS.Cert }, usual: "/c", text: "/d", want: "/d", wrong: []string{""}},
	{name: "GRPC_SERVER_TLS_KEY", with: grpcTLS, get: func(s *Settings) any { return s.GRPCTLS.Key }, usual: "/k", text: "/d", want: "/d", wrong: []string{""}},
	{name: "GRPC_CLIENT_TLS_CACERT", with: grpcTLS[:3], get: func(s *Settings) any { return s.GRPCTLS.ClientCA }, usual: "", text: "/d", want: "/d"},
	{name: "GRPC_CLIENT_TLS_SAN", with: grpcTLS, get: func(s *Settings) any { return s.GRPCTLS.ClientSAN }, usual: "", text: "envoy", want: "envoy"},
	{name: "GRPC_SERVER_TLS_CA_CERT", text: "/certs/ca.crt"},
}

var sourceRows = []row{
	{name: "CONFIG_TYPE", initial: "FILE", get: func(s *Settings) any { return s.XDS != nil && s.ConfigDir == "" }, usual: false, text: "GRPC_XDS_SOTW", want: true, wrong: []string{"file"}},
	{name: "RUNTIME_ROOT", initial: "/srv/runtime_data/current", get: func(s *Settings) any { return s.ConfigDir }, usual: "/srv/runtime_data/current/config", text: "/data", want: "/data/config", wrong: []string{""}},
	{name: "RUNTIME_SUBDIRECTORY", get: func(s *Settings) any { return s.ConfigDir }, usual: "/srv/runtime_data/current/config", text: "a", want: "/srv/runtime_data/current/a/config"},
	{name: "RUNTIME_APPDIRECTORY", initial: "config", get: func(s *Settings) any { return s.ConfigDir }, usual: "/srv/runtime_data/current/config", text: "a/b", want: "/srv/runtime_data/current/a/b", wrong: []string{""}},
	{name: "RUNTIME_IGNOREDOTFILES", initial: "false", silent: true, text: "1", wrong: []string{""}},
	{name: "RUNTIME_WATCH_ROOT", initial: "true", silent: true, text: "FALSE", wrong: []string{"fAlse"}},
	{name: "MERGE_DOMAIN_CONFIG", initial: "false", get: func(s *Settings) any { return s.MergeDomains }, usual: false, text: "true", want: true, wrong: []string{"2"}},
	{name: "FORCE_START_WITHOUT_INITIAL_CONFIG", initial: "false", get: func(s *Settings) any { return s.ForceStart }, usual: false, text: "true", want: true, wrong: []string{"on"}},
	{name: "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", initial: "false", get: func(s *Settings) any { return s.HealthyWithConfig }, usual: false, text: "true", want: true, wrong: []string{" true"}},
	{name: "CONFIG_GRPC_XDS_SERVER_URL", initial: "localhost:18000", with: fromXDS, get: func(s *Settings) any { return s.XDS.Server }, usual: "localhost:18000", text: "a:1", want: "a:1", wrong: []string{"", "http://a:1", "a", "a:0", "a:http", "a b:1"}},
	{name: "CONFIG_GRPC_XDS_NODE_ID", initial: "default", with: fromXDS, get: func(s *Settings) any { return s.XDS.NodeID }, usual: "default", text: "a", want: "a"},
	{name: "CONFIG_GRPC_XDS_NODE_METADATA", with: fromXDS, get: func(s *Settings) any { return s.XDS.NodeMetadata }, usual: map[string]string{}, text: "a=b=c,d=", want: map[string]string{"a": "b=c", "d": ""}},
	{name: "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", with: fromXDS, get: func(s *Settings) any { return s.XDS.Headers }, usual: map[string]string{}, text: "A-b: c,d:", want: map[string]string{"a-b": " c", "d": ""}, wrong: []string{"a:b:c"}},
	{name: "CONFIG_GRPC_XDS_SERVER_USE_TLS", initial: "false", with: fromXDS, get: func(s *Settings) any { return s.XDS.TLS != nil }, usual: false, text: "true", want: true, wrong: []string{"x"}},
	{name: "CONFIG_GRPC_XDS_CLIENT_TLS_CERT", with: xdsTLS, get: func(s *Settings) any { return s.XDS.TLS.Cert }, usual: "/c", text: "/d", want: "/d"},
	{name: "CONFIG_GRPC_XDS_CLIENT_TLS_KEY", with: xdsTLS, get: func(s *Settings) any { return s.XDS.TLS.Key }, usual: "/k", text: "/d", want: "/d"},
	{name: "CONFIG_GRPC_XDS_SERVER_TLS_CACERT", with: xdsTLS, get: func(s *Settings) any { return s.XDS.TLS.CA }, usual: "", text: "/d", want: "/d"},
	{name: "CONFIG_GRPC_XDS_SERVER_TLS_SAN", with: xdsTLS, get: func(s *Settings) any { return s.XDS.TLS.ServerName }, usual: "", text: "a", want: "a"},
	{name: "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", initial: "3s", text: "1s", wrong: []string{"3"}},
	{name: "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", initial: "10s", with: fromXDS, get: func(s *Settings) any { return s.XDS.MinBackoff }, usual: 10 * time.Second, text: "1s", want: time.Second, wrong: []string{"-3s"}},
	{name: "XDS_CLIENT_BACKOFF_MAX_INTERVAL", initial: "60s", with: fromXDS, get: func(s *Settings) any { return s.XDS.MaxBackoff }, usual: time.Minute, text: "1s", want: time.Second, wrong: []string{"1 s"}},
	{name: "XDS_CLIENT_BACKOFF_RANDOM_FACTOR", initial: "0.5", text: "1e1", wrong: []string{"NaN", "half"}},
	{name: "XDS_CLIENT_BACKOFF_JITTER", initial: "true", text: "0", wrong: []string{"no"}},
	{name: "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", initial: "0", with: fromXDS, get: func(s *Settings) any { return s.XDS.MaxMessage }, usual: 0, text: "1_000", want: 1000, wrong: []string{"-1"}},
}

var (
	responseOn = []string{"LIMIT_RESPONSE_HEADERS_ENABLED=true"}
	requestOn  = []string{"LIMIT_REQUEST_HEADERS_ENABLED=true"}
	sentinels  = []string{"REDIS_TYPE=SENTINEL", "REDIS_URL=m,s:26379", "REDIS_AUTH=u:p"}
	redisTCP   = []string{"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=redis:6379"}
	redisTLS   = []string{"REDIS_TLS=true", "REDIS_TLS_CLIENT_CERT=/c", "REDIS_TLS_CLIENT_KEY=/k"}
)

var answerRows = []row{
	{name: "SHADOW_MODE", initial: "false", get: func(s *Settings) any { return s.Shadow }, usual: false, text: "true", want: true, wrong: []string{"x"}},
	{name: "QUOTA_MODE", initial: "false", get: func(s *Settings) any { return s.Quota }, usual: false, text: "true", want: true, wrong: []string{"x"}},
	{name: "LIMIT_RESPONSE_HEADERS_ENABLED", initial: "false", get: func(s *Settings) any { return s.ResponseHeaders != nil }, usual: false, text: "true", want: true, wrong: []string{"x"}},
	{name: "LIMIT_LIMIT_HEADER", initial: "RateLimit-Limit", with: responseOn, get: func(s *Settings) any { return s.ResponseHeaders.Limit }, usual: "RateLimit-Limit", text: "x-l", want: "x-l", wrong: []string{""}},
	{name: "LIMIT_REMAINING_HEADER", initial: "RateLimit-Remaining", with: responseOn, get: func(s *Settings) any { return s.ResponseHeaders.Remaining }, usual: "RateLimit-Remaining", text: "x-l", want: "x-l", wrong: []string{"x l"}},
	{name: "LIMIT_RESET_HEADER", initial: "RateLimit-Reset", with: responseOn, get: func(s *Settings) any { return s.ResponseHeaders.Reset }, usual: "RateLimit-Reset", text: "x-l", want: "x-l", wrong: []string{"x:"}},
	{name: "LIMIT_REQUEST_HEADERS_ENABLED", initial: "false", get: func(s *Settings) any { return s.RequestHeaders != nil }, usual: false, text: "true", want: true, wrong: []string{"x"}},
	{name: "LIMIT_REQUEST_LIMIT_HEADER", initial: "RateLimit-Limit", with: requestOn, get: func(s *Settings) any { return s.RequestHeaders.Limit }, usual: "RateLimit-Limit", text: "x-l", want: "x-l", wrong: []string{""}},
	{name: "LIMIT_REQUEST_REMAINING_HEADER", initial: "RateLimit-Remaining", with: requestOn, get: func(s *Settings) any { return s.RequestHeaders.Remaining }, usual: "RateLimit-Remaining", text: "x-l", want: "x-l", wrong: []string{"é"}},
	{name: "LIMIT_REQUEST_RESET_HEADER", initial: "RateLimit-Reset", with: requestOn, get: func(s *Settings) any { return s.RequestHeaders.Reset }, usual: "RateLimit-Reset", text: "x-l", want: "x-l", wrong: []string{"\n"}},
	{name: "RESPONSE_DYNAMIC_METADATA", initial: "false", get: func(s *Settings) any { return s.Metadata }, usual: false, text: "true", want: true, wrong: []string{"x"}},
	{name: "NEAR_LIMIT_RATIO", initial: "0.8", get: func(s *Settings) any { return s.NearLimit }, usual: 0.8, text: ".5", want: 0.5, wrong: []string{"80"}},
	{name: "BACKEND_TYPE", initial: "redis", text: "memcache", wrong: []string{"Redis"}},
	{name: "CACHE_KEY_PREFIX", get: func(s *Settings) any { return s.KeyPrefix }, usual: "", text: "a_", want: "a_"},
	{name: "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", initial: "false", text: "true", wrong: []string{"x"}},
	{name: "LOCAL_CACHE_SIZE_IN_BYTES", initial: "0", text: "1048576", wrong: []string{"1MiB"}},
	{name: "EXPIRATION_JITTER_MAX_SECONDS", initial: "300", text: "0", wrong: []string{"300s"}},
}

var redisRows = []row{
	{name: "REDIS_TYPE", initial: "SINGLE", with: redisTCP, get: func(s *Settings) any { return s.Redis.Cluster }, usual: false, text: "cluster", want: true, wrong: []string{"cluster "}},
	{name: "REDIS_SOCKET_TYPE", initial: "unix", with: redisTCP, get: func(s *Settings) any { return s.Redis.Addrs }, usual: []string{"redis:6379"}, text: "tcp", want: []string{"redis:6379"}, wrong: []string{"udp"}},
	{name: "REDIS_URL", initial: "/var/run/nutcracker/ratelimit.sock", with: redisTCP, get: func(s *Settings) any { return s.Redis.Addrs }, usual: []string{"redis:6379"}, text: "[::1]:1", want: []string{"[::1]:1"}, wrong: []string{"redis", "/a"}},
	{name: "REDIS_AUTH", get: func(s *Settings) any { return s.Redis.User + " " + s.Redis.Password }, usual: " ", text: "u:p:q", want: "u p:q", wrong: []string{"u:"}},
	{name: "REDIS_SENTINEL_AUTH", with: sentinels, get: func(s *Settings) any { return s.Redis.User }, usual: "u", text: "u:p", want: "u", wrong: []string{"p"}},
	{name: "REDIS_TLS", initial: "false", get: func(s *Settings) any { return s.Redis.TLS != nil }, usual: false, text: "true", want: true, wrong: []string{"x"}},
	{name: "REDIS_TLS_CLIENT_CERT", with: redisTLS, get: func(s *Settings) any { return s.Redis.TLS.Cert }, usual: "/c", text: "/d", want: "/d"},
	{name: "REDIS_TLS_CLIENT_KEY", with: redisTLS, get: func(s *Settings) any { return s.Redis.TLS.Key }, usual: "/k", text: "/d", want: "/d"},
	{name: "REDIS_TLS_CACERT", with: redisTLS, get: func(s *Settings) any { return s.Redis.TLS.CA }, usual: "", text: "/d", want: "/d"},
	{name: "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", initial: "false", text: "true", wrong: []string{"x"}},
	{name: "REDIS_TIMEOUT", initial: "10s", text: "0s", wrong: []string{"10", "", "-1s"}},
	{name: "REDIS_POOL_SIZE", initial: "10", text: "20", wrong: []string{"ten"}},
	{name: "REDIS_POOL_ON_EMPTY_BEHAVIOR", initial: "WAIT", text: "ERROR"},
	{name: "REDIS_POOL_ON_EMPTY_WAIT_DURATION", initial: "1s", text: "2s", wrong: []string{"2"}},
	{name: "REDIS_PIPELINE_WINDOW", initial: "0", text: "150us", wrong: []string{"150"}},
	{name: "REDIS_PIPELINE_LIMIT", initial: "0", text: "8", wrong: []string{"8.0"}},
	{name: "REDIS_CLUSTER_PIPELINE_PARALLELISM", initial: "1", text: "0", wrong: []string{"x"}},
	{name: "REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR", initial: "false", text: "true", wrong: []string{"x"}},
	{name: "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", initial: "false", text: "true", wrong: []string{"x"}},
	{name: "REDIS_STARTUP_INITIAL_INTERVAL", initial: "1s", text: "2s", wrong: []string{"2"}},
	{name: "REDIS_STARTUP_MAX_INTERVAL", initial: "30s", text: "2s", wrong: []string{"2"}},
	{name: "REDIS_STARTUP_MAX_ELAPSED_TIME", initial: "0", text: "2s", wrong: []string{"2"}},
	{name: "REDIS_PERSECOND", initial: "false", text: "true", wrong: []string{"x"}},
	{name: "REDIS_PERSECOND_SOCKET_TYPE", initial: "unix", text: "tcp"},
	{name: "REDIS_PERSECOND_TYPE", initial: "SINGLE", text: "CLUSTER"},
	{name: "REDIS_PERSECOND_URL", initial: "/var/run/nutcracker/ratelimitpersecond.sock", text: "redis:6379"},
	{name: "REDIS_PERSECOND_POOL_SIZE", initial: "10", text: "20", wrong: []string{"x"}},
	{name: "REDIS_PERSECOND_AUTH", text: "p"},
	{name: "REDIS_PERSECOND_SENTINEL_AUTH", text: "p"},
	{name: "REDIS_PERSECOND_TLS", initial: "false", text: "true", wrong: []string{"x"}},
	{name: "REDIS_PERSECOND_TIMEOUT", initial: "10s", text: "1s", wrong: []string{"1"}},
	{name: "REDIS_PERSECOND_PIPELINE_WINDOW", initial: "0", text: "1s", wrong: []string{"1"}},
	{name: "REDIS_PERSECOND_PIPELINE_LIMIT", initial: "0", text: "8", wrong: []string{"x"}},
	{name: "REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM", initial: "1", text: "0", wrong: []string{"x"}},
	{name: "REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR", initial: "WAIT", text: "ERROR"},
	{name: "REDIS_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION", initial: "1s", text: "2s", wrong: []string{"2"}},
	{name: "MEMCACHE_HOST_PORT", text: "a:1,b:2"},
	{name: "MEMCACHE_MAX_IDLE_CONNS", initial: "2", text: "3", wrong: []string{"x"}},
	{name: "MEMCACHE_SRV", text: "a"},
	{name: "MEMCACHE_SRV_REFRESH", initial: "0", text: "1s", wrong: []string{"1"}},
	{name: "MEMCACHE_TLS", initial: "false", text: "true", wrong: []string{"x"}},
	{name: "MEMCACHE_TLS_CLIENT_CERT", text: "/c"},
	{name: "MEMCACHE_TLS_CLIENT_KEY", text: "/k"},
	{name: "MEMCACHE_TLS_CACERT", text: "/ca"},
	{name: "MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION", initial: "false", text: "true", wrong: []string{"x"}},
}

var (
	prometheusOn = []string{"USE_STATSD=false", "USE_PROMETHEUS=true"}
	tracingOn    = []string{"TRACING_ENABLED=true"}
)

var otherRows = []row{
	{name: "USE_PROMETHEUS", initial: "false", get: func(s *Settings) any { return s.PrometheusAddr }, usual: "", text: "true", want: ":9090", wrong: []string{"x"}},
	{name: "PROMETHEUS_ADDR", initial: ":9090", with: prometheusOn, get: func(s *Settings) any { return s.PrometheusAddr }, usual: ":9090", text: "[::1]:0", want: "[::1]:0", wrong: []string{"9090"}},
	{name: "PROMETHEUS_PATH", initial: "/metrics", text: "/", wrong: []string{"metrics"}},
	{name: "PROMETHEUS_MAPPER_YAML", text: "/a.yaml"},
	{name: "PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS", initial: "false", text: "true", wrong: []string{"x"}},
	{name: "DISABLE_STATS", initial: "false", with: prometheusOn, get: func(s *Settings) any { return s.PrometheusAddr == "" }, usual: false, text: "true", want: true, wrong: []string{"x"}},
	{name: "USE_STATSD", initial: "true", get: func(s *Settings) any { return s.PrometheusAddr == "" }, usual: true, text: "false", want: true, wrong: []string{"x"}},
	{name: "STATSD_HOST", initial: "localhost", text: "a"},
	{name: "STATSD_PORT", initial: "8125", text: "9125", wrong: []string{"tcp://10.0.0.1:8125"}},
	{name: "STATS_FLUSH_INTERVAL", initial: "10s", text: "1s", wrong: []string{"1"}},
	{name: "USE_DOG_STATSD", initial: "false", text: "true", wrong: []string{"x"}},
	{name: "USE_DOG_STATSD_MOGRIFIERS", text: "A,B"},
	{name: "EXTRA_TAGS", text: "a:b,c:d", wrong: []string{"a=b"}},
	{name: "LOG_LEVEL", initial: "WARN", get: func(s *Settings) any { return s.LogLevel }, usual: slog.LevelWarn, text: "Trace", want: slog.LevelDebug, wrong: []string{""}},
	{name: "LOG_FORMAT", initial: "text", get: func(s *Settings) any { return s.LogFormat }, usual: "text", text: "JSON", want: "json"},
	{name: "TRACING_ENABLED", initial: "false", get: func(s *Settings) any { return s.OTLPEndpoint }, usual: "", text: "true", want: "https://localhost:4318/v1/traces", wrong: []string{"x"}},
	{name: "TRACING_EXPORTER_PROTOCOL", initial: "http", with: tracingOn, get: func(s *Settings) any { return s.OTLPEndpoint }, usual: "https://localhost:4318/v1/traces", text: "", want: "https://localhost:4318/v1/traces", wrong: []string{"HTTP"}},
	{name: "OTEL_EXPORTER_OTLP_ENDPOINT", with: tracingOn, get: func(s *Settings) any { return s.OTLPEndpoint }, usual: "https://localhost:4318/v1/traces", text: "http://c:4318/a/", want: "http://c:4318/a/v1/traces", wrong: []string{"c:4318", "http://u:p@c", "grpc://c:4317", "http://c?a"}},
	{name: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", with: append(slices.Clone(tracingOn), "OTEL_EXPORTER_OTLP_ENDPOINT=http://d:1"), get: func(s *Settings) any { return s.OTLPEndpoint }, usual: "http://d:1/v1/traces", text: "http://c:4318/a", want: "http://c:4318/a", wrong: []string{"http://:1"}},
	{name: "TRACING_SERVICE_NAME", initial: "RateLimit", text: "a"},
	{name: "TRACING_SERVICE_NAMESPACE", text: "a"},
	{name: "TRACING_SERVICE_INSTANCE_ID", text: "a"},
	{name: "TRACING_SAMPLING_RATE", initial: "1", text: "0.1", wrong: []string{"10%"}},
}

func TestVariables(t *testing.T) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if r.get != nil {
				checkTaken(t, r)
			} else {
				checkNotTaken(t, r)
			}
			checkWrong(t, r)
		})
	}
}

// set returns an environment with a variable before others, so that it counts.
func (r row) set(text string) []string {
	return append([]string{r.name + "=" + text}, r.with...)
}

func checkTaken(t *testing.T, r row) {
	for _, of := range []struct {
		environ []string
		want    any
		left    bool
	}{
		{r.with, r.usual, r.idle},
		{r.set(r.initial), r.usual, r.idle || setIn(r.with, r.name) || slices.Contains(r.wrong, r.initial)},
		{r.set(r.text), r.want, false},
	} {
		if of.left {
			continue
		}
		s, notices, err := Parse(of.environ)
		if err != nil || len(notices) > 0 {
			t.Fatalf("%v: %v, %v", of.environ, notices, err)
		}
		if got := r.get(s); !reflect.DeepEqual(got, of.want) {
			t.Errorf("%v: got %v, want %v", of.environ, got, of.want)
		}
	}
}

// setIn reports whether an environment sets a variable.
func setIn(environ []string, name string) bool {
	return slices.ContainsFunc(environ, func(pair string) bool { return strings.HasPrefix(pair, name+"=") })
}

func checkNotTaken(t *testing.T, r row) {
	before, notices, err := Parse(nil)
	if err != nil || len(notices) > 0 {
		t.Fatal(notices, err)
	}
	if s, notices, err := Parse(r.set(r.initial)); err != nil || len(notices) > 0 || !reflect.DeepEqual(s, before) {
		t.Errorf("the default gives %v, %v", notices, err)
	}
	s, notices, err := Parse(r.set(r.text))
	if r.silent {
		if err != nil || len(notices) > 0 || !reflect.DeepEqual(s, before) {
			t.Errorf("%s gives %v, %v", r.text, notices, err)
		}
		return
	}
	if len(notices) != 1 || notices[0].Name != r.name || notices[0].Text == "" || notices[0].Refused != (err != nil) {
		t.Fatalf("%s gives %v, %v", r.text, notices, err)
	}
	if err == nil && !reflect.DeepEqual(s, before) {
		t.Errorf("%s changes the settings to %+v", r.text, s)
	}
	if err != nil && !strings.HasPrefix(err.Error(), "env "+r.name+": ") {
		t.Error(err)
	}
}

// advice is the end of every error.
var advice = regexp.MustCompile(`^env [A-Z_]+: .*[;:] (write|set|give) .`)

func checkWrong(t *testing.T, r row) {
	for _, text := range r.wrong {
		s, notices, err := Parse(r.set(text))
		if s != nil || err == nil || len(notices) != 1 || !notices[0].Refused {
			t.Fatalf("%q gives %v, %v, %v", text, s, notices, err)
		}
		if !advice.MatchString(err.Error()) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q gives no advice in one line: %v", text, err)
		}
		if links := strings.Contains(err.Error(), "enableServiceLinks: false"); links != strings.HasPrefix(text, "tcp://") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestTableIsRatelimits checks that the table has every variable of ratelimit once, with its
// default.
func TestTableIsRatelimits(t *testing.T) {
	want := map[string]string{}
	for _, r := range rows {
		want[r.name] = r.initial
	}
	got := map[string]string{}
	for _, r := range Table() {
		if _, found := got[r.Name]; found {
			t.Errorf("%s is there twice", r.Name)
		}
		got[r.Name] = r.Default
	}
	if len(want) != len(rows) || !maps.Equal(got, want) {
		t.Errorf("the table has %d variables, the test %d", len(got), len(want))
		for name := range maps.Keys(want) {
			if _, found := got[name]; !found || got[name] != want[name] {
				t.Errorf("%s: default %q, want %q", name, got[name], want[name])
			}
		}
	}
}

// TestDefaultsAreValues checks that each default has the form of its variable.
func TestDefaultsAreValues(t *testing.T) {
	for _, v := range variables(new(draft)) {
		if _, ok := v.value.read(v.initial); !ok {
			t.Errorf("%s: %q", v.name, v.initial)
		}
		if _, ok := v.value.read(v.value.example); !ok {
			t.Errorf("%s: the example %q", v.name, v.value.example)
		}
	}
}

func TestMarkdown(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(Markdown(), "\n"), "\n")
	if len(lines) != 2+len(rows) {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines {
		if strings.Count(line, "|") != 5 {
			t.Errorf("not four columns: %s", line)
		}
		if r := Table(); i >= 2 && !strings.HasPrefix(line, "| `"+r[i-2].Name+"` | ") {
			t.Errorf("line %d is not %s: %s", i, r[i-2].Name, line)
		}
	}
	const want = "| `LOCAL_CACHE_SIZE_IN_BYTES` | `0` | not needed | denials are cached by bucket, always |"
	if !slices.Contains(lines, want) {
		t.Errorf("not there: %s", want)
	}
}
