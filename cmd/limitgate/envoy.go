package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/rlsenv"
)

const envoyUsage = `Answers Envoy's rate limit service from the environment variables and the files of
envoyproxy/ratelimit: a deployment of it changes its image and its command.

Usage: limitgate envoy [flags]

  REDIS_SOCKET_TYPE=tcp REDIS_URL=127.0.0.1:6379 RUNTIME_ROOT=/data limitgate envoy

It reads the variables of envoyproxy/ratelimit, prints those that it ignores, and ends with
all that it refuses. All flags and variables of limitgate serve work too, and win.
docs/envoy.md lists the variables, and limitgate serve --help the flags.
`

// runEnvoy runs serve with the settings that the variables of envoyproxy/ratelimit mean.
func runEnvoy(ctx context.Context, env *environment, args []string) int {
	er, notices, err := rlsenv.Parse(env.environ)
	for _, n := range notices {
		if !n.Refused {
			fmt.Fprintf(env.stderr, "limitgate envoy: %s: %s\n", n.Name, n.Text)
		}
	}
	if err != nil {
		for mistake := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintf(env.stderr, "limitgate envoy: %s\n", mistake)
		}
		return exitUsage
	}
	// The first of two variables counts, so that those of limitgate win.
	variables := missingFrom(env.environ, envoyVariables(er))
	env.environ = append(env.environ, variables...)
	settings, origins, rest, err := config.Load(args, env.environ, config.ReadSettingsFile)
	err = inTheirNames(err)
	if errors.Is(err, flag.ErrHelp) {
		if env.manual != nil {
			*env.manual = manual{about: envoyUsage, flags: settingFlags()}
			return exitOK
		}
		fmt.Fprint(env.stdout, envoyUsage)
		return exitOK
	}
	if code, ok := checkLoaded(env, "envoy", settings, origins, rest, err); !ok {
		return code
	}
	applyEnvoy(settings, er)
	nameTheirPorts(settings, variables)
	nameTheirRedis(settings, variables)
	if !settings.UsesRedis() {
		fmt.Fprintln(env.stderr, "limitgate envoy: REDIS_URL: it is not set, so that counters are in the memory of this process alone; for a Redis set REDIS_SOCKET_TYPE=tcp and REDIS_URL=host:port")
	}
	return serve(ctx, env, settings)
}

// envPrefix precedes the name of a setting in its variable.
const envPrefix = "LIMITGATE_"

// theirNames are the variables of envoyproxy/ratelimit that set those of limitgate.
var theirNames = map[string]string{
	"RLS": "GRPC_HOST, GRPC_PORT or GRPC_UDS", "RLS_HTTP": "HOST, PORT", "RLS_DEBUG": "DEBUG_HOST, DEBUG_PORT", "RLS_PREFIX": "CACHE_KEY_PREFIX",
	"RLS_CONFIG": "RUNTIME_ROOT", "ADMIN": "PROMETHEUS_ADDR", "REDIS": "REDIS_URL", "REDIS_SENTINEL": "REDIS_URL", "OTLP_ENDPOINT": "OTEL_EXPORTER_OTLP_ENDPOINT",
	"RLS_TLS_CERT": "GRPC_SERVER_TLS_CERT", "RLS_TLS_KEY": "GRPC_SERVER_TLS_KEY", "RLS_TLS_CLIENT_CA": "GRPC_CLIENT_TLS_CACERT",
	"REDIS_TLS_CA": "REDIS_TLS_CACERT", "REDIS_TLS_CERT": "REDIS_TLS_CLIENT_CERT", "REDIS_TLS_KEY": "REDIS_TLS_CLIENT_KEY",
}

// theirPorts are those that set ports.
var theirPorts = map[string]string{"RLS": "GRPC_PORT", "RLS_HTTP": "PORT", "RLS_DEBUG": "DEBUG_PORT", "ADMIN": "PROMETHEUS_ADDR"}

// nameTheirPorts replaces the names of variables that were made of those of envoyproxy/ratelimit by these,
// for errors of their addresses.
func nameTheirPorts(s *config.Settings, variables []string) {
	for name, written := range s.WrittenAs {
		theirs := theirPorts[strings.TrimPrefix(written, envPrefix)]
		if theirs == "" || !slices.ContainsFunc(variables, func(v string) bool { return strings.HasPrefix(v, written+"=") }) {
			continue
		}
		if theirs == "GRPC_PORT" && strings.HasPrefix(s.RLS.Listen, config.UnixPrefix) {
			theirs = "GRPC_UDS"
		}
		s.WrittenAs[name] = theirs
	}
}

// nameTheirRedis does the same for those of Redis, whether they are set or not, for advice about them.
func nameTheirRedis(s *config.Settings, variables []string) {
	if s.WrittenAs == nil {
		s.WrittenAs = map[string]string{}
	}
	for name, theirs := range map[string]string{
		"redis": "REDIS_URL", "redis.tls": "REDIS_TLS", "redis.tls_ca": "REDIS_TLS_CACERT", "redis.tls_cert": "REDIS_TLS_CLIENT_CERT",
		"redis.tls_key": "REDIS_TLS_CLIENT_KEY", "redis.user": "REDIS_AUTH", "redis.password_file": "REDIS_AUTH",
	} {
		written := s.WrittenAs[name]
		if written == "" || slices.ContainsFunc(variables, func(v string) bool { return strings.HasPrefix(v, written+"=") }) {
			s.WrittenAs[name] = theirs
		}
	}
}

// ourVariable matches a variable in the place of an error.
var ourVariable = regexp.MustCompile(`env ` + envPrefix + `(\w+)`)

// inTheirNames returns the error with the variables of envoyproxy/ratelimit beside those that they set.
func inTheirNames(err error) error {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return err
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		names := theirNames
		place, _, found := strings.Cut(line, ": ")
		if before, _, same := strings.Cut(line, config.SamePort); same {
			names, place, found = theirPorts, before, true
		}
		if !found {
			continue
		}
		lines[i] = ourVariable.ReplaceAllStringFunc(place, func(ours string) string {
			name := strings.TrimPrefix(ours, "env "+envPrefix)
			if names[name] == "" {
				return ours
			}
			return "env " + names[name] + " (" + envPrefix + name + ")"
		}) + strings.TrimPrefix(line, place)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// envoyVariables returns the variables of limitgate that say what those of envoyproxy/ratelimit mean.
func envoyVariables(er *rlsenv.Settings) (all []string) {
	set := func(name, value string) {
		if value != "" {
			all = append(all, "LIMITGATE_"+name+"="+value)
		}
	}
	set("RLS", er.GRPC)
	set("RLS_HTTP", er.HTTP)
	set("RLS_DEBUG", er.Debug)
	set("RLS_PREFIX", er.KeyPrefix)
	set("RLS_CONFIG", er.ConfigDir)
	set("RLS_MERGE_DOMAINS", strconv.FormatBool(er.MergeDomains))
	if t := er.GRPCTLS; t != nil {
		set("RLS_TLS_CERT", t.Cert)
		set("RLS_TLS_KEY", t.Key)
		set("RLS_TLS_CLIENT_CA", t.ClientCA)
	}
	if er.PrometheusAddr != "" {
		set("ADMIN", withHost(er.PrometheusAddr))
	}
	set("LOG_LEVEL", strings.ToLower(er.LogLevel.String()))
	set("LOG_FORMAT", er.LogFormat)
	set("OTLP_ENDPOINT", er.OTLPEndpoint)
	if r := &er.Redis; len(r.Addrs) > 0 {
		nodes := strings.Join(r.Addrs, ",")
		if r.Sentinel != "" {
			set("REDIS_SENTINEL", r.Sentinel+"@"+nodes)
		} else {
			if r.DB != 0 {
				nodes = fmt.Sprintf("redis://%s/%d", nodes, r.DB)
			}
			set("REDIS", nodes)
		}
		if r.TLS != nil {
			set("REDIS_TLS", "true")
			set("REDIS_TLS_CA", r.TLS.CA)
			set("REDIS_TLS_CERT", r.TLS.Cert)
			set("REDIS_TLS_KEY", r.TLS.Key)
			set("REDIS_TLS_SERVER_NAME", r.TLS.ServerName)
		}
	}
	return all
}

// withHost returns an address to listen on that names a host: none is all of this machine.
func withHost(addr string) string {
	if host, port, err := net.SplitHostPort(addr); err == nil && host == "" {
		return net.JoinHostPort("0.0.0.0", port)
	}
	return addr
}

// missingFrom returns the variables whose names are not in environ.
func missingFrom(environ, variables []string) (missing []string) {
	given := map[string]bool{}
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		given[name] = true
	}
	for _, v := range variables {
		if name, _, _ := strings.Cut(v, "="); !given[name] {
			missing = append(missing, v)
		}
	}
	return missing
}

// applyEnvoy sets what has no variable of limitgate's own.
func applyEnvoy(s *config.Settings, er *rlsenv.Settings) {
	if s.RedisPassword = er.Redis.Password; s.RedisPassword != "" && s.RedisUser == "" {
		s.RedisUser = er.Redis.User
	}
	if t := er.GRPCTLS; t != nil {
		s.RLS.TLS.ClientSAN = t.ClientSAN
	}
	if x := er.XDS; x != nil {
		s.RLS.XDS = &config.RLSXDS{
			Server: x.Server, NodeID: x.NodeID, Metadata: x.NodeMetadata, Headers: x.Headers,
			MinBackoff: x.MinBackoff, MaxBackoff: x.MaxBackoff, MaxMessage: x.MaxMessage,
		}
		if t := x.TLS; t != nil {
			s.RLS.XDS.Encrypted = true
			s.RLS.XDS.CA, s.RLS.XDS.Cert, s.RLS.XDS.Key, s.RLS.XDS.ServerName = t.CA, t.Cert, t.Key, t.ServerName
		}
	}
	s.RLS.ForceStart, s.RLS.HealthyWithConfig = er.ForceStart, er.HealthyWithConfig
	s.RLS.Shadow, s.RLS.Quota, s.RLS.Metadata, s.RLS.NearLimit = er.Shadow, er.Quota, er.Metadata, er.NearLimit
	s.RLS.MaxConnectionAge, s.RLS.MaxConnectionAgeGrace = er.MaxConnectionAge, er.MaxConnectionAgeGrace
	if h := er.ResponseHeaders; h != nil {
		s.RLS.ResponseHeaders = &config.RLSHeaders{Limit: h.Limit, Remaining: h.Remaining, Reset: h.Reset}
	}
	if h := er.RequestHeaders; h != nil {
		s.RLS.RequestHeaders = &config.RLSHeaders{Limit: h.Limit, Remaining: h.Remaining, Reset: h.Reset}
	}
}
