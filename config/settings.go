package config

import (
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"
)

// Settings are the settings of serve.
type Settings struct {
	Listen string   // address for Redis clients
	Admin  string   // address for /healthz, /readyz, /metrics; empty switches it off
	Limits string   // path of the limits file; empty for the built-in sample
	Redis  []string // addresses of the store; none for the memory store
	Config string   // path of the settings file

	DecisionTimeout time.Duration
	StoreIOTimeout  time.Duration
	RetryJitter     time.Duration
	MemoryBuckets   int
	Instances       int

	MaxConns        int
	IdleTimeout     time.Duration
	ShutdownTimeout time.Duration
	UnsafeOpen      bool
	Pprof           bool
	LogFormat       string
	LogLevel        slog.Level

	PrivacyIPSecretFile string
	PrivacyIPMaxTTL     time.Duration
	PrivacyIPv6Prefix   int

	PrintConfig bool // print the settings and where they come from, then exit
	JSON        bool // print them as JSON
}

// setting is a row of the table that drives flags, environment, settings file,
// --print-config and help.
type setting struct {
	name     string // as in the file: decision_timeout, privacy.ip_max_ttl
	group    string
	fallback string
	help     string
	flagOnly bool // makes no sense in the environment or a file
	isBool   bool
	set      func(*Settings, string) error
}

func (s *setting) flag() string { return strings.NewReplacer("_", "-", ".", "-").Replace(s.name) }

func (s *setting) env() string {
	return "LIMITGATE_" + strings.ToUpper(strings.ReplaceAll(s.name, ".", "_"))
}

const (
	groupListen   = "Listening"
	groupLimits   = "Limits"
	groupStore    = "Store"
	groupClients  = "Connections"
	groupPrivacy  = "Privacy"
	groupOperator = "Operating"
)

// table lists every setting.
func table() []setting {
	return []setting{
		{"listen", groupListen, "127.0.0.1:6380", "`address` for Redis clients", false, false, text(func(s *Settings) *string { return &s.Listen })},
		{"admin", groupListen, "127.0.0.1:9180", "`address` for /healthz, /readyz and /metrics; empty switches it off", false, false, text(func(s *Settings) *string { return &s.Admin })},
		{"unsafe_open", groupListen, "false", "allow addresses that others on the network can reach", false, true, boolean(func(s *Settings) *bool { return &s.UnsafeOpen })},
		{"pprof", groupListen, "false", "serve profiles on the admin address", false, true, boolean(func(s *Settings) *bool { return &s.Pprof })},

		{"limits", groupLimits, "", "limits `file`; without one a built-in sample is used", false, false, text(func(s *Settings) *string { return &s.Limits })},
		{"retry_jitter", groupLimits, "30s", "the most that retry_after is spread; 0 switches it off", false, false, duration(0, time.Hour, func(s *Settings) *time.Duration { return &s.RetryJitter })},

		{"redis", groupStore, "", "`addresses` of a Redis Cluster or a single Redis, comma separated; without one the store is memory", false, false, list(func(s *Settings) *[]string { return &s.Redis })},
		{"decision_timeout", groupStore, "5ms", "how long a decision may take before the backstop makes it", false, false, duration(time.Millisecond, time.Minute, func(s *Settings) *time.Duration { return &s.DecisionTimeout })},
		{"store_io_timeout", groupStore, "250ms", "how long a connection to the store may wait for a reply before it is given up", false, false, duration(time.Millisecond, time.Minute, func(s *Settings) *time.Duration { return &s.StoreIOTimeout })},
		{"memory_buckets", groupStore, "1000000", "the most buckets the memory store keeps", false, false, integer(1000, 100_000_000, func(s *Settings) *int { return &s.MemoryBuckets })},
		{"instances", groupStore, "1", "how many proxies share the limits while the store is sick", false, false, integer(1, 100_000, func(s *Settings) *int { return &s.Instances })},

		{"max_conns", groupClients, "10000", "the most client connections", false, false, integer(1, 1_000_000, func(s *Settings) *int { return &s.MaxConns })},
		{"idle_timeout", groupClients, "0s", "close a connection that has sent nothing for so long; 0 means never", false, false, duration(0, math.MaxInt64, func(s *Settings) *time.Duration { return &s.IdleTimeout })},
		{"shutdown_timeout", groupClients, "10s", "how long a stop may wait for replies in flight", false, false, duration(0, time.Hour, func(s *Settings) *time.Duration { return &s.ShutdownTimeout })},

		{"privacy.ip_secret_file", groupPrivacy, "", "`file` of the secret that addresses are hashed with", false, false, text(func(s *Settings) *string { return &s.PrivacyIPSecretFile })},
		{"privacy.ip_max_ttl", groupPrivacy, "1h", "the longest a hashed address may be kept", false, false, duration(time.Second, 366*24*time.Hour, func(s *Settings) *time.Duration { return &s.PrivacyIPMaxTTL })},
		{"privacy.ipv6_prefix", groupPrivacy, "64", "how many `bits` of an IPv6 address make one client", false, false, integer(1, 128, func(s *Settings) *int { return &s.PrivacyIPv6Prefix })},

		{"log_format", groupOperator, "text", "text or json", false, false, word(func(s *Settings) *string { return &s.LogFormat }, "text", "json")},
		{"log_level", groupOperator, "info", "debug, info, warn or error", false, false, level(func(s *Settings) *slog.Level { return &s.LogLevel })},
		{"config", groupOperator, "", "settings `file` in YAML: the names below, with _ for -", false, false, text(func(s *Settings) *string { return &s.Config })},
		{"print_config", groupOperator, "false", "print every setting and where it comes from, then exit", true, true, boolean(func(s *Settings) *bool { return &s.PrintConfig })},
		{"json", groupOperator, "false", "print the settings as JSON", true, true, boolean(func(s *Settings) *bool { return &s.JSON })},
	}
}

func text(field func(*Settings) *string) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		*field(s) = v
		return nil
	}
}

func list(field func(*Settings) *[]string) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		*field(s) = nil
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				*field(s) = append(*field(s), part)
			}
		}
		return nil
	}
}

func boolean(field func(*Settings) *bool) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("%.40q is neither true nor false", v)
		}
		*field(s) = b
		return nil
	}
}

func integer(least, most int, field func(*Settings) *int) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%.40q is not a whole number from %d to %d", v, least, most)
		}
		*field(s) = n
		return nil
	}
}

func duration(least, most time.Duration, field func(*Settings) *time.Duration) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		d, err := time.ParseDuration(v)
		switch {
		case err != nil:
			return fmt.Errorf("%.40q is not a duration; write it with a unit, for example 5ms", v)
		case d < least:
			return fmt.Errorf("%s is too short: the least is %s", v, least)
		case d > most:
			return fmt.Errorf("%s is too long: the most is %s", v, most)
		}
		*field(s) = d
		return nil
	}
}

func word(field func(*Settings) *string, words ...string) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		for _, w := range words {
			if v == w {
				*field(s) = v
				return nil
			}
		}
		return fmt.Errorf("%.40q is not one of %s", v, strings.Join(words, ", "))
	}
}

func level(field func(*Settings) *slog.Level) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
		l, ok := levels[v]
		if !ok {
			return fmt.Errorf("%.40q is not one of debug, info, warn, error", v)
		}
		*field(s) = l
		return nil
	}
}
