package config

import (
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// otherNames are names of flags in other programs, with the flags here that are meant, the most
// likely one first. Variables and keys of the settings file are looked up as flags.
var otherNames = map[string][]string{
	"--port": flagsOfAddress, "--p": flagsOfAddress, "--host": flagsOfAddress, "--bind": flagsOfAddress, "--address": flagsOfAddress, "--addr": flagsOfAddress, "--server": flagsOfAddress,
	"--listen-port": flagsOfAddress, "--listen-addr": flagsOfAddress, "--listen-address": flagsOfAddress, "--listen": {"--addr"},
	"--password": flagsOfPassword, "--pass": flagsOfPassword, "--auth": flagsOfPassword, "--a": flagsOfPassword, "--redis-password": {"--redis-password-file"}, "--redis-pass": {"--redis-password-file"},
	"--username": {"--user", "--redis-user"}, "--user": {"--redis-user"},
	"--config": {"--limits"}, "--file": {"--limits"}, "--limits-file": {"--limits"}, "--limit-file": {"--limits"}, "--limits-path": {"--limits"}, "--rules-file": {"--limits"}, "--rules": {"--limits"}, "--policy": {"--limits"},
	"--cluster": flagOfRedis, "--redis-cluster": flagOfRedis, "--cluster-nodes": flagOfRedis, "--url": {"--redis", "--addr"},
	"--redis-url": flagOfRedis, "--redis-uri": flagOfRedis, "--redis-port": flagOfRedis, "--redis-endpoint": flagOfRedis, "--redis-endpoints": flagOfRedis,
	"--redis-host": flagOfRedis, "--redis-hosts": flagOfRedis, "--redis-server": flagOfRedis, "--redis-servers": flagOfRedis, "--redis-node": flagOfRedis, "--redis-nodes": flagOfRedis,
	"--redis-addr": flagOfRedis, "--redis-address": flagOfRedis, "--redis-addresses": flagOfRedis,
	"--tls": {"--tls-cert", "--redis-tls"}, "--cert": {"--tls-cert", "--redis-tls-cert"}, "--key": {"--tls-key", "--redis-tls-key"}, "--cacert": {"--tls-ca", "--redis-tls-ca"},
	"--rate": {"--rps"}, "--load": {"--rps"}, "--checks": {"--rps"}, "--checks-per-second": {"--rps"}, "--requests": {"--rps"}, "--peak": {"--peak-rps"},
	"--interval": {"--every"}, "--timeout": {"--decision-timeout"}, "--verbose": {"--log-level"}, "--debug": {"--log-level"}, "--metrics": {"--admin"}, "--admin": {"--addr"},
	"--admin-port": {"--admin"}, "--admin-addr": {"--admin"}, "--metrics-port": {"--admin"}, "--metrics-addr": {"--admin"},
	"--http-port": {"--http"}, "--http-addr": {"--http"}, "--grpc": {"--rls"}, "--grpc-port": {"--rls"}, "--rls-port": {"--rls"}, "--rls-addr": {"--rls"},
}

var (
	flagsOfAddress  = []string{"--listen", "--addr", "--redis"}
	flagsOfPassword = []string{"--password-file", "--redis-password-file"}
	flagOfRedis     = []string{"--redis"}
	flagsOfDatabase = []string{"--db", "--database", "--redis-db", "--redis-database", "--redis-index"}
	flagsOfTrial    = []string{"--dry-run", "--dryrun", "--check", "--test", "--validate", "--shadow"}
	flagsOfFailure  = []string{"--fail-open", "--fail-closed", "--failopen", "--on-error"}
	flagsOfDaemon   = []string{"--d", "--daemon", "--daemonize", "--detach", "--background"}
	flagsOfStore    = []string{"--store", "--storage", "--backend", "--memory", "--in-memory", "--driver"}
)

// InsteadOfFlag says what to write in the place of an unknown flag of a command with --redis, where that is no other flag, or
// returns "". Serves is true for the settings of limitgate serve.
func InsteadOfFlag(flag string, serves bool) string {
	switch {
	case slices.Contains(flagsOfDatabase, flag):
		return "a database of Redis is named with its address: --redis=redis://HOST:PORT/1"
	case serves && slices.Contains(flagsOfTrial, flag):
		return "limitgate limits lint FILE checks a limits file, and mode: shadow of a limit counts and refuses nobody"
	case serves && slices.Contains(flagsOfFailure, flag):
		return "each limit says what happens without Redis: on_error: open or closed in the limits file"
	case serves && slices.Contains(flagsOfDaemon, flag):
		return "it runs in the foreground: start it by systemd, or with & behind it"
	case serves && slices.Contains(flagsOfStore, flag):
		return "without --redis the buckets are in the memory of this process: leave it out"
	}
	return ""
}

// MeantFlag returns the flag of those of a command that an unknown flag most likely means, or "".
func MeantFlag(unknown string, flags []string) string {
	if other := newTable(new(Settings)).otherFlag(unknown, flags); other != "" {
		return other
	}
	names := make([]string, len(flags))
	for i, f := range flags {
		names[i] = strings.TrimPrefix(f, "--") // which all have: with it short names would be alike
	}
	if near := limit.Nearest(strings.TrimPrefix(unknown, "--"), names); near != "" {
		return "--" + near
	}
	return ""
}

// otherFlag returns the flag that has the unknown name in other programs, or whose setting has that name as its
// key: the flag of redis.addrs is --redis. It returns "" if there is none.
func (t settings) otherFlag(unknown string, flags []string) string {
	for _, meant := range otherNames[unknown] {
		if slices.Contains(flags, meant) {
			return meant
		}
	}
	for _, r := range t {
		if flagName(r.name) == unknown && slices.Contains(flags, r.flag()) {
			return r.flag()
		}
	}
	return ""
}

// settingOfOther returns the setting that a variable without its prefix, or a key of the settings file, means
// as otherFlag does, or nil.
func (t settings) settingOfOther(name string, most origin) *setting {
	r, _ := t.find((*setting).flag, flagName, t.otherFlag(flagName(strings.ToLower(name)), t.keys((*setting).flag, most)))
	return r
}
