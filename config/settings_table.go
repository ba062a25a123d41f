package config

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// setting is a row of the table: the properties of one setting for flags, environment,
// settings file, help and --print-config.
type setting struct {
	name string // the key in the settings file; a dot nests
	// short, unless empty, is the name of the flag and the variable.
	short string
	// was are earlier names, which still work and cause a warning.
	was []string
	// removed, unless empty, is the reason why the setting has no effect any more. It
	// causes a warning.
	removed string
	group   string // the heading in help
	initial string // the default, in the user's syntax
	// withRedis is the default with --redis, if it differs.
	withRedis string
	// example is the value in errors, where the default is none to name.
	example string
	usage   string // its effect, for help
	value   value
	source  origin
}

// origin is the set of sources in which a setting may be given.
type origin int

const (
	anywhere origin = iota
	// outsideFile is for the path of the settings file.
	outsideFile
	// flagsOnly is for settings that ask for another action than serving.
	flagsOnly
)

func (r *setting) flag() string { return flagName(cmp.Or(r.short, r.name)) }

func (r *setting) env() string { return envName(cmp.Or(r.short, r.name)) }

func flagName(name string) string {
	return "--" + strings.NewReplacer(".", "-", "_", "-").Replace(name)
}

func envName(name string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

func fileName(name string) string { return name }

func (r *setting) key() string { return r.name }

// settings are all settings, in the order of help and --print-config.
type settings []*setting

// The headings of help.
const (
	groupListen  = "Listening"
	groupHTTP    = "Checks over HTTP"
	groupRLS     = "Envoy's rate limit service"
	groupLimits  = "Limits and decisions"
	groupStore   = "Store"
	groupPrivacy = "Addresses of clients"
	groupLog     = "Logs, metrics, traces and profiles"
	groupWebhook = "Events"
	groupConfig  = "Settings"
)

// newTable returns the settings; parsing a value modifies s.
func newTable(s *Settings) settings {
	return slices.Concat(listenSettings(s), authSettings(s), httpSettings(s), rlsSettings(s), limitsSettings(s), decisionSettings(s), redisSettings(s), storeSettings(s), privacySettings(s), logSettings(s), emfSettings(s), otlpSettings(s), webhookSettings(s), configSettings(s))
}

func listenSettings(s *Settings) settings {
	return settings{
		{
			name: "listen", group: groupListen, initial: "127.0.0.1:6380",
			usage: "where Redis clients connect", value: listenAddress(&s.Listen, "6380"),
		},
		{
			name: "admin", group: groupListen, initial: "127.0.0.1:9180",
			usage: "where health, metrics and profiles are served; empty switches it off", value: optional(listenAddress(&s.Admin, "9180"), &s.Admin),
		},
		{
			name: "max_conns", group: groupListen, initial: "10000",
			usage: "how many clients may be connected at once, if open files allow", value: whole(&s.MaxConns, 1, 1<<20),
		},
		{
			name: "idle_timeout", group: groupListen, initial: "0", example: "5m",
			usage: "how long a client may be silent before it is disconnected; 0 is for ever", value: duration(&s.IdleTimeout, 0, 7*24*time.Hour),
		},
		{
			name: "max_conn_age", group: groupListen, initial: "0", example: "1h",
			usage: "the age, and up to a tenth more, at which a quiet connection is closed; 0 is never", value: duration(&s.MaxConnAge, 0, 7*24*time.Hour),
		},
		{
			name: "cluster_announce", group: groupListen,
			usage: "the host:port that cluster clients receive; empty is the one they connected to", value: optional(publicAddress(&s.ClusterAnnounce), &s.ClusterAnnounce),
		},
		{
			name: "shutdown_timeout", group: groupListen, initial: "10s",
			usage: "how long to wait at the end for decisions under way", value: duration(&s.ShutdownTimeout, time.Millisecond, time.Hour),
		},
		{
			name: "tls.cert", group: groupListen,
			usage: "the certificate of --listen, --admin, --http and --rls, in PEM; read again on changes", value: filePath(&s.TLSCert),
		},
		{
			name: "tls.key", group: groupListen,
			usage: "its key", value: filePath(&s.TLSKey),
		},
		{
			name: "tls.client_ca", group: groupListen,
			usage: "the authorities that sign the certificates that clients must have; empty asks for none", value: filePath(&s.TLSClientCA),
		},
	}
}

func limitsSettings(s *Settings) settings {
	return settings{
		{
			name: "limits", group: groupLimits,
			usage: "the limits file, read again on changes, or dynamodb://TABLE; empty is the sample", value: filePath(&s.Limits),
		},
		{
			name: "limits_canary", group: groupLimits, initial: "0%",
			usage: "the share of tenants that a changed limits file is tried on, 5 is 5%; 0% is for all at once", value: percentage(&s.LimitsCanary),
		},
		{
			name: "limits_canary_threshold", group: groupLimits, initial: "5%",
			usage: "how many points more of all requests it may deny there before it is taken back", value: percentage(&s.CanaryThreshold),
		},
		{
			name: "limits_snapshot", group: groupLimits,
			usage: "where the limits of a table are kept for a start without it; empty is nowhere", value: filePath(&s.LimitsSnapshot),
		},
		{
			name: "updates", was: []string{"updates_topic", "updates_queue"}, group: groupLimits,
			usage: "SNS topic with the changes of the table, or an SQS queue made for this proxy alone", value: updates(&s.Updates),
		},
		{
			name: "rollout.gate", was: []string{"rollout_gate"}, group: groupLimits,
			usage: "the configuration in AWS AppConfig that selects which limits of a table are tried", value: reference(&s.RolloutGate, "appconfig://APPLICATION/ENVIRONMENT/PROFILE"),
		},
		{
			name: "cells.id", was: []string{"cell"}, group: groupLimits,
			usage: "the cell of this proxy, which enforces its part of every limit; empty enforces all of it", value: reference(&s.Cell, "ID"),
		},
		{
			name: "cells.weight", was: []string{"cell_weight"}, group: groupLimits, initial: "100",
			usage: "how much traffic the cell gets beside others, until it is given another weight", value: whole(&s.CellWeight, 1, limit.MaxCellWeight),
		},
		{
			name: "cells.table", was: []string{"cells_table"}, group: groupLimits,
			usage: "the DynamoDB table in which cells are registered", value: reference(&s.CellsTable, "TABLE"),
		},
	}
}

func decisionSettings(s *Settings) settings {
	return settings{
		{
			name: "decision_timeout", group: groupLimits, initial: "5ms",
			usage: "how long the store may take before a decision is made without it", value: duration(&s.DecisionTimeout, time.Millisecond, time.Minute),
		},
		{
			name: "retry_jitter", group: groupLimits, initial: "30s",
			usage: "how far retries of denied clients are spread, at most; 0 is no spreading", value: duration(&s.RetryJitter, 0, time.Hour),
		},
		{
			name: "instances", group: groupLimits, initial: "1", withRedis: "heartbeat",
			usage: "proxies that share the limits: N, heartbeat, dns:NAME, dns+srv:NAME, eds:HOST:PORT/CLUSTER", value: instancesFrom(&s.Instances),
		},
		{
			name: "backstop.ceiling", group: groupLimits, initial: "3",
			usage: "how many times fewer they may become while Redis is unavailable, at most", value: whole(&s.BackstopCeiling, 1, 100),
		},
		{
			name: "backstop.total_rate", group: groupLimits, initial: "0", example: "1000",
			usage: "units a second for all tenants together while the store is unavailable; 0 is no bound", value: whole(&s.BackstopTotalRate, 0, 1_000_000_000),
		},
		{
			name: "deny_cache.size", group: groupLimits, initial: "65536",
			usage: "how many denials of Redis are cached; 0 for none", value: whole(&s.DenyCacheSize, 0, 10_000_000),
		},
		{
			name: "deny_cache.max_ttl", group: groupLimits, initial: "1s",
			usage: "how long a denial is cached at most", value: duration(&s.DenyCacheMaxTTL, time.Millisecond, time.Minute),
		},
	}
}

func redisSettings(s *Settings) settings {
	return settings{
		{
			name: "redis.addrs", short: "redis", was: []string{"redis"}, group: groupStore,
			usage: "nodes of a Redis Cluster, or one Redis, as redis://HOST:PORT/DATABASE; empty for memory", value: nodes(&s.Redis),
		},
		{
			name: "redis.sentinel", group: groupStore,
			usage: "a master and its Sentinels, which find it after a failover, instead of --redis", value: sentinel(&s.RedisSentinel),
		},
		{
			name: "redis.tls", group: groupStore, initial: "false",
			usage: "encrypt the connections to Redis; rediss:// in front of an address does the same", value: toggle(&s.RedisTLS),
		},
		{
			name: "redis.tls_ca", group: groupStore,
			usage: "the authorities that sign the certificates of Redis, in PEM; empty is the system's", value: filePath(&s.RedisTLSCA),
		},
		{
			name: "redis.tls_server_name", group: groupStore,
			usage: "the name in the certificates of Redis; empty is the host of each address", value: reference(&s.RedisTLSServerName, "NAME"),
		},
		{
			name: "redis.tls_cert", group: groupStore,
			usage: "the certificate that Redis knows this proxy by, in PEM; read again on changes", value: filePath(&s.RedisTLSCert),
		},
		{
			name: "redis.tls_key", group: groupStore,
			usage: "its key", value: filePath(&s.RedisTLSKey),
		},
		{
			name: "redis.user", group: groupStore,
			usage: "the user of Redis; empty is the default user", value: reference(&s.RedisUser, "NAME"),
		},
		{
			name: "redis.password_file", group: groupStore,
			usage: "the file of its password, read for each connection", value: filePath(&s.RedisPasswordFile),
		},
		{
			name: "redis.password_secret", group: groupStore,
			usage: "a secret of AWS Secrets Manager with its password, instead of a file", value: reference(&s.RedisPasswordSecret, "ARN"),
		},
		{
			name: "redis.auth", group: groupStore, initial: "password",
			usage: "how the user logs in: with a password, or with tokens of AWS IAM", value: choice(&s.RedisAuth, word("password", "password"), word("iam", "iam")),
		},
		{
			name: "redis.iam_cache", group: groupStore,
			usage: "the replication group, serverless cache or MemoryDB cluster that the tokens are for", value: iamCache(&s.RedisIAMCache),
		},
		{
			name: "redis.io_timeout", was: []string{"store_io_timeout"}, group: groupStore, initial: "250ms",
			usage: "how long one read or write may take on a connection to Redis", value: duration(&s.RedisIOTimeout, time.Millisecond, time.Minute),
		},
		{
			name: "redis.declared_keys", was: []string{"store_declared_keys"}, group: groupStore, initial: "false",
			usage: "call scripts with declared keys of one hash slot only, even where a cluster takes more", value: toggle(&s.RedisDeclaredKeys),
		},
	}
}

func storeSettings(s *Settings) settings {
	return settings{
		{
			name: "ready_needs_store", group: groupStore, initial: "false",
			usage: "report a proxy ready only after it has reached its Redis once", value: toggle(&s.ReadyNeedsStore),
		},
		{
			name: "breaker.cooldown", group: groupStore, initial: "1s",
			usage: "how long a master of Redis that does not answer gets no calls, at the least", value: duration(&s.BreakerCooldown, 10*time.Millisecond, time.Minute),
		},
		{
			name: "memory.buckets", was: []string{"memory_buckets"}, group: groupStore, initial: "1000000",
			usage: "how many buckets are kept in memory, without Redis", value: whole(&s.MemoryBuckets, 1000, 100_000_000),
		},
	}
}

func privacySettings(s *Settings) settings {
	return settings{
		{
			name: "privacy.ip_secret_file", group: groupPrivacy,
			usage: "the file of the secret that addresses are hashed with, 16 bytes or more", value: filePath(&s.PrivacyIPSecretFile),
		},
		{
			name: "privacy.ip_secret_previous_file", group: groupPrivacy,
			usage: "the file of the secret before, while it is being replaced", value: filePath(&s.PrivacyIPSecretPreviousFile),
		},
		{
			name: "privacy.ip_max_ttl", group: groupPrivacy, initial: "1h",
			usage: "the longest that a hashed address may be kept", value: duration(&s.PrivacyIPMaxTTL, time.Second, 365*24*time.Hour),
		},
		{
			name: "privacy.ipv4_prefix", group: groupPrivacy, initial: "32",
			usage: "how many bits of an IPv4 address tell clients apart", value: whole(&s.PrivacyIPv4Prefix, 1, 32),
		},
		{
			name: "privacy.ipv6_prefix", group: groupPrivacy, initial: "64",
			usage: "how many bits of an IPv6 address tell clients apart", value: whole(&s.PrivacyIPv6Prefix, 1, 128),
		},
	}
}

func logSettings(s *Settings) settings {
	return settings{
		{
			name: "log.format", was: []string{"log_format"}, group: groupLog, initial: "text",
			usage: "how log lines are written", value: choice(&s.LogFormat, word("text", "text"), word("json", "json")),
		},
		{
			name: "log.level", was: []string{"log_level"}, group: groupLog, initial: "info",
			usage: "the least level that is logged", value: choice(&s.LogLevel, word("debug", slog.LevelDebug),
				word("info", slog.LevelInfo), word("warn", slog.LevelWarn), word("error", slog.LevelError)),
		},
		{
			name: "log.denials", group: groupLog, initial: "false",
			usage: "log a sample of the denials, with hashed addresses", value: toggle(&s.LogDenials),
		},
		{
			name: "pprof", group: groupLog, initial: "false",
			usage: "serve profiles on the admin address", value: toggle(&s.Pprof),
		},
	}
}

func configSettings(s *Settings) settings {
	return settings{
		{
			name: "config", group: groupConfig,
			usage: "the settings file, in YAML", value: filePath(&s.Config), source: outsideFile,
		},
		{
			name: "print_config", group: groupConfig, initial: "false",
			usage: "print every setting and where it comes from, and end", value: toggle(&s.PrintConfig), source: flagsOnly,
		},
		{
			name: "json", group: groupConfig, initial: "false",
			usage: "with --print-config: print JSON", value: toggle(&s.JSON), source: flagsOnly,
		},
	}
}

// removedSettings are settings that have no effect any more. Their values are checked, so
// that a file with them is read as before.
func removedSettings() settings {
	return settings{
		{
			name: "tcp_keepalive", example: "5m", removed: "the kernel probes silent clients after 5 minutes", value: duration(new(time.Duration), 0, 9*time.Hour),
		},
		{
			name: "store_separate_checks", removed: "equal checks are decided in one step, with the same results", value: toggle(new(bool)),
		},
	}
}

// find returns the setting with a name in a source, or nil. current returns the name of a
// setting there, and form that of an earlier name. The warning is empty unless word is an
// earlier name, or the setting is removed.
func (t settings) find(current func(*setting) string, form func(name string) string, word string) (r *setting, warning string) {
	for _, r := range t {
		if current(r) == word {
			return r, ""
		}
		for _, old := range r.was {
			if form(old) == word {
				warning = word + " is called " + current(r) + " now"
				if section, key, nested := strings.Cut(current(r), "."); nested { // in a file
					warning += ": write " + key + " below " + section
				}
				return r, warning
			}
		}
	}
	for _, r := range removedSettings() {
		if current(r) == word {
			return r, word + " has no effect any more: " + r.removed
		}
	}
	return nil, ""
}

// named returns the setting with a name.
func (t settings) named(name string) *setting {
	r, _ := t.find((*setting).key, fileName, name)
	return r
}

// keys returns the results of key for the settings that may be given in a source up to
// most.
func (t settings) keys(key func(*setting) string, most origin) []string {
	var all []string
	for _, r := range t {
		if r.source <= most {
			all = append(all, key(r))
		}
	}
	return all
}
