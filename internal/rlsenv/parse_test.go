package rlsenv

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// names returns the variables of notices.
func names(notices []Notice) (all []string) {
	for _, n := range notices {
		all = append(all, n.Name)
	}
	return all
}

// TestDeployments parses the environments of deployments that many people copied: only the
// variables that Limitgate has no use for cause notices.
func TestDeployments(t *testing.T) {
	container := []string{
		"PATH=/usr/bin", "HOME=/", "HOSTNAME=ratelimit-0", "KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_PORT=tcp://10.96.0.1:443",
		"REDIS_SERVICE_HOST=10.96.0.2", "REDIS_PORT=tcp://10.96.0.2:6379", "REDIS_PORT_6379_TCP_ADDR=10.96.0.2", "REDIS_SERVICE_PORT_REDIS=6379",
		"REDIS_MASTER_PORT_6379_TCP=tcp://10.96.0.2:6379", "GRPC_GO_LOG_SEVERITY_LEVEL=info", "GRPC_XDS_BOOTSTRAP=/x", "GOMAXPROCS=2", "POD_NAME=a",
	}
	for name, test := range map[string]struct {
		environ, notices []string
		check            func(s *Settings) bool
	}{
		"Istio's sample": {
			[]string{
				"LOG_LEVEL=debug", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=redis:6379", "USE_STATSD=false", "RUNTIME_ROOT=/data",
				"RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_WATCH_ROOT=false", "RUNTIME_IGNOREDOTFILES=true", "HOST=::", "GRPC_HOST=::",
			},
			nil,
			func(s *Settings) bool {
				return s.ConfigDir == "/data/ratelimit/config" && s.GRPC == "[::]:8081" &&
					s.LogLevel == slog.LevelDebug && slices.Equal(s.Redis.Addrs, []string{"redis:6379"}) && s.XDS == nil
			},
		},
		"Envoy Gateway": {
			[]string{
				"RUNTIME_ROOT=/data", "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_IGNOREDOTFILES=true", "RUNTIME_WATCH_ROOT=false", "LOG_LEVEL=info",
				"USE_STATSD=false", "CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL=envoy-gateway:18001", "CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit",
				"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=/certs/tls.crt", "GRPC_SERVER_TLS_KEY=/certs/tls.key", "GRPC_SERVER_TLS_CA_CERT=/certs/ca.crt",
				"CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT=/certs/tls.crt", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY=/certs/tls.key",
				"CONFIG_GRPC_XDS_SERVER_TLS_CACERT=/certs/ca.crt", "FORCE_START_WITHOUT_INITIAL_CONFIG=true", "REDIS_SOCKET_TYPE=tcp",
				"REDIS_URL=redis.redis-system.svc.cluster.local:6379", "USE_PROMETHEUS=true", "PROMETHEUS_ADDR=:19001",
				"PROMETHEUS_MAPPER_YAML=/etc/statsd-exporter/conf.yaml", "TRACING_ENABLED=true", "TRACING_SERVICE_NAME=envoy-ratelimit",
				"TRACING_SERVICE_NAMESPACE=envoy-gateway-system", "TRACING_SERVICE_INSTANCE_ID=a", "TRACING_SAMPLING_RATE=0.6", "OTEL_EXPORTER_OTLP_ENDPOINT=http://trace:4318",
			},
			[]string{
				"GRPC_SERVER_TLS_CA_CERT", "PROMETHEUS_MAPPER_YAML", "TRACING_SERVICE_NAME",
				"TRACING_SERVICE_NAMESPACE", "TRACING_SERVICE_INSTANCE_ID", "TRACING_SAMPLING_RATE",
			},
			func(s *Settings) bool {
				return reflect.DeepEqual(s.XDS.TLS, &ClientTLS{CA: "/certs/ca.crt", Cert: "/certs/tls.crt", Key: "/certs/tls.key"}) &&
					s.XDS.Server == "envoy-gateway:18001" && s.ConfigDir == "" && s.ForceStart &&
					reflect.DeepEqual(s.GRPCTLS, &ServerTLS{Cert: "/certs/tls.crt", Key: "/certs/tls.key"}) &&
					s.PrometheusAddr == ":19001" && s.OTLPEndpoint == "http://trace:4318/v1/traces"
			},
		},
		"nothing": {nil, nil, func(s *Settings) bool {
			return len(s.Redis.Addrs) == 0 && s.PrometheusAddr == "" && s.KeyPrefix == "" && s.ResponseHeaders == nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, notices, err := Parse(append(test.environ, container...))
			if err != nil || !slices.Equal(names(notices), test.notices) || !test.check(s) {
				t.Errorf("%+v, %v, %v", s, notices, err)
			}
		})
	}
}

// TestAllRefusalsAtOnce checks that the error has a line for each variable that is refused, and none
// for those that only follow.
func TestAllRefusalsAtOnce(t *testing.T) {
	s, notices, err := Parse([]string{
		"BACKEND_TYPE=memcache", "REDIS_PERSECOND=true", "REDIS_PERSECOND_URL=a", "PORT=http", "NEAR_LIMIT_RATIO=x", "GRPC_SERVER_USE_TLS=maybe",
		"GRPC_CLIENT_TLS_SAN=a", "REDIS_TYPE=clusters", "REDIS_URL=a:1,b:2", "LIMIT_RESPONSE_HEADERS_ENABLED=1", "LIMIT_LIMIT_HEADER=",
	})
	const want = `env PORT: "http" is not the number of a port, 0 to 65535; write for example 8081
env GRPC_SERVER_USE_TLS: "maybe" is not true or false; write for example true
env NEAR_LIMIT_RATIO: "x" is not a number from 0 to 1; write for example 0.8
env BACKEND_TYPE: counters are kept in Redis and not in memcached; set BACKEND_TYPE=redis and REDIS_URL
env REDIS_TYPE: "clusters" is not SINGLE, CLUSTER or SENTINEL; write for example SINGLE
env REDIS_PERSECOND: limits per second cannot have a Redis of their own; leave it out, and let REDIS_URL name a Redis for all limits
env LIMIT_LIMIT_HEADER: it is not the name of a header; write for example X-LIMIT-HEADER`
	if s != nil || err == nil || err.Error() != want {
		t.Errorf("%v: %v", s, err)
	}
	if len(notices) != 8 || notices[6] != (Notice{Name: "REDIS_PERSECOND_URL", Text: oneStore}) {
		t.Errorf("%v", notices)
	}
}

// TestNotices checks notices that depend on several variables, and misspelled names.
func TestNotices(t *testing.T) {
	for _, test := range []struct {
		environ []string
		want    string
	}{
		{[]string{"GRPC_CLIENT_TLS_CACERT=/ca"}, "GRPC_CLIENT_TLS_CACERT: it has no effect without GRPC_SERVER_USE_TLS=true"},
		{append(slices.Clone(grpcTLS[:3]), "GRPC_CLIENT_TLS_SAN=a"), "GRPC_CLIENT_TLS_SAN: it has no effect without GRPC_CLIENT_TLS_CACERT"},
		{[]string{"REDIS_TLS_CACERT=/ca"}, "REDIS_TLS_CACERT: it has no effect without REDIS_TLS=true"},
		{redisTLS[:2], "REDIS_TLS_CLIENT_CERT: it has no effect without REDIS_TLS_CLIENT_KEY"},
		{[]string{"REDIS_TLS=true", "REDIS_TLS_CLIENT_KEY=/k"}, "REDIS_TLS_CLIENT_KEY: it has no effect without REDIS_TLS_CLIENT_CERT"},
		{append(slices.Clone(fromXDS), "CONFIG_GRPC_XDS_NODE_METADATA=a:b"), "CONFIG_GRPC_XDS_NODE_METADATA: an entry without = is not sent; write NAME=VALUE,NAME=VALUE"},
		{append(slices.Clone(tracingOn), "TRACING_EXPORTER_PROTOCOL=grpc"), "TRACING_EXPORTER_PROTOCOL: spans leave by OTLP over HTTP only, so none are exported: set it to http, and the endpoint to the HTTP port of the collector, usually 4318"},
		{[]string{"REDIS_URLL=a"}, "REDIS_URLL: it is not a variable of ratelimit, and nothing reads it; did you mean REDIS_URL?"},
		{[]string{"RUNTIME_IGNORE_DOTFILES=a"}, "RUNTIME_IGNORE_DOTFILES: it is not a variable of ratelimit, and nothing reads it; did you mean RUNTIME_IGNOREDOTFILES?"},
		{[]string{"LIMIT_RESPONSE_HEADER_ENABLED=1"}, "LIMIT_RESPONSE_HEADER_ENABLED: it is not a variable of ratelimit, and nothing reads it; did you mean LIMIT_RESPONSE_HEADERS_ENABLED?"},
		{[]string{"GRPC_SERVER_USETLS=1"}, "GRPC_SERVER_USETLS: it is not a variable of ratelimit, and nothing reads it; did you mean GRPC_SERVER_USE_TLS?"},
		{[]string{"CONFIG_GRPC_XDS_SERVER_URI=a"}, "CONFIG_GRPC_XDS_SERVER_URI: it is not a variable of ratelimit, and nothing reads it; did you mean CONFIG_GRPC_XDS_SERVER_URL?"},
		{[]string{"MEMCACHE_HOSTPORT=a"}, "MEMCACHE_HOSTPORT: it is not a variable of ratelimit, and nothing reads it; did you mean MEMCACHE_HOST_PORT?"},
		{[]string{"REDIS_PER_SECOND=true"}, "REDIS_PER_SECOND: it is not a variable of ratelimit, and nothing reads it; did you mean REDIS_PERSECOND?"},
		{[]string{"REDIS_PASSWORD=a"}, "REDIS_PASSWORD: it is not a variable of ratelimit, and nothing reads it; did you mean REDIS_AUTH?"},
		{[]string{"REDIS_EXPORTER_ARGS=a", "redis_url=a", "REDIS_URL2 =a", "MY_REDIS_URL=a", "REDIS_", "=", "", "\xff=a", "SHADOW=1"}, ""},
		{[]string{"REDIS_TIMEOUT=10000ms", "REDIS_POOL_SIZE=0xa", "USE_STATSD=true", "BACKEND_TYPE=", "REDIS_PERSECOND=F", "TRACING_SAMPLING_RATE=1.0"}, ""},
		{[]string{"LOCAL_CACHE_SIZE_IN_BYTES=0", "LOCAL_CACHE_SIZE_IN_BYTES=x"}, ""}, // the first counts
	} {
		s, notices, err := Parse(test.environ)
		var all []string
		for _, n := range notices {
			all = append(all, n.Name+": "+n.Text)
		}
		if got := strings.Join(all, "\n"); err != nil || s == nil || got != test.want {
			t.Errorf("%v: %s, %v", test.environ, got, err)
		}
	}
}

// TestHalfPairs checks that a certificate without its key is left out, as in ratelimit.
func TestHalfPairs(t *testing.T) {
	s, _, err := Parse(redisTLS[:2])
	if err != nil || *s.Redis.TLS != (ClientTLS{}) {
		t.Errorf("%+v, %v", s, err)
	}
	if s, _, err = Parse(append(slices.Clone(grpcTLS[:3]), "GRPC_CLIENT_TLS_SAN=a")); err != nil || s.GRPCTLS.ClientSAN != "" {
		t.Errorf("%+v, %v", s, err)
	}
}
