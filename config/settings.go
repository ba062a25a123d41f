package config

import (
	"errors"
	"flag"
	"log/slog"
	"slices"
	"time"
)

// Settings is what limitgate serve is told to do. Load fills it in; after that
// nobody changes it, so any number of goroutines may read it.
type Settings struct {
	// Listen is the host:port where Redis clients connect.
	Listen string
	// Admin is the host:port of health, metrics and profiles; empty is off.
	Admin string
	// MaxConns is how many client connections there may be at once, 1 to
	// 1,048,576.
	MaxConns int
	// IdleTimeout closes a connection that has sent nothing for so long, at most
	// 168 h; 0 is never.
	IdleTimeout time.Duration
	// MaxConnAge closes a connection that is older at a quiet moment, at most 168 h;
	// 0 is never.
	MaxConnAge time.Duration
	// TCPKeepalive is how long a silent connection is left alone before the kernel
	// asks whether the client is there, at most 9 h; 0 is never.
	TCPKeepalive time.Duration
	// ClusterAnnounce is the host:port that cluster clients are told; empty is the
	// address that they came in on.
	ClusterAnnounce string
	// ShutdownTimeout is how long a drain waits, 1 ms to 1 h.
	ShutdownTimeout time.Duration
	// UnsafeOpen allows addresses that others can reach.
	UnsafeOpen bool

	// Limits is the path of the limits file, or LimitsTablePrefix and the name of a table;
	// empty is the built-in sample.
	Limits string
	// LimitsCanary is the share of tenants on which a changed file is tried first, in
	// hundredths of a percent, 0 for none, and CanaryThreshold by how much of all requests
	// it may deny more, likewise, before it is taken back.
	LimitsCanary, CanaryThreshold int
	// LimitsSnapshot is where the limits of a table are kept; empty is nowhere.
	LimitsSnapshot string
	// UpdatesTopic is the ARN of the topic that tells of changes of the table, and
	// UpdatesQueue the URL of a queue that is subscribed to it already.
	UpdatesTopic, UpdatesQueue string
	// RolloutGate is the configuration in AWS AppConfig that says which revision of the
	// table's limits is tried, see appconfig.ParseName; empty tries none.
	RolloutGate string
	// Cell is the id of the cell that this proxy is in, which enforces its part of each
	// limit; empty enforces all of it. CellWeight is the cell's weight until somebody gives
	// it another one, 1 to limit.MaxCellWeight, and CellsTable the name of the DynamoDB
	// table in which cells are registered.
	Cell       string
	CellWeight int
	CellsTable string
	// DecisionTimeout is how long the store may take to decide, 1 ms to 60 s.
	DecisionTimeout time.Duration
	// RetryJitter spreads the moments at which denied clients are told to come
	// back, at most 1 h; 0 is off.
	RetryJitter time.Duration
	// Instances says how many proxies share the limits, for leases and while the
	// store is sick.
	Instances Instances
	// BackstopCeiling is by how much the number of instances may have fallen, at
	// most, while the store does not answer, 1 to 100.
	BackstopCeiling int
	// BackstopTotalRate is how many units a second the proxy admits for all tenants
	// together while the store is sick, up to backstop.MaxTotalRate; 0 is no bound.
	BackstopTotalRate int
	// DenyCacheSize is how many refusals of the store are remembered, up to
	// 10,000,000; 0 is off. DenyCacheMaxTTL is how long at most, 1 ms to 60 s.
	DenyCacheSize   int
	DenyCacheMaxTTL time.Duration

	// Redis holds the addresses, host:port, of a Redis Cluster or of one Redis;
	// empty means that buckets are kept in memory.
	Redis []string
	// ReadyNeedsStore has a proxy not called ready before it has reached its Redis once.
	ReadyNeedsStore bool
	// StoreIOTimeout bounds one read or write on a connection to Redis, 1 ms to
	// 60 s.
	StoreIOTimeout time.Duration
	// BreakerCooldown is how long a master of Redis that does not answer is left
	// alone at the least, 10 ms to 60 s.
	BreakerCooldown time.Duration
	// StoreSeparateChecks has equal checks decided one by one.
	StoreSeparateChecks bool
	// StoreDeclaredKeys has every script call declare its keys, all in one slot.
	StoreDeclaredKeys bool
	// MemoryBuckets bounds the memory store, 1,000 to 100,000,000 buckets.
	MemoryBuckets int

	// PrivacyIPSecretFile is the path of the secret that addresses are hashed
	// with, see ReadSecret; empty leaves the choice to the program.
	PrivacyIPSecretFile string
	// PrivacyIPMaxTTL is the longest that a hashed address may be kept, 1 s to
	// 8,760 h.
	PrivacyIPMaxTTL time.Duration
	// PrivacyIPv6Prefix is how many bits of an IPv6 address tell clients apart, 1
	// to 128.
	PrivacyIPv6Prefix int

	// LogFormat is text or json.
	LogFormat string
	// LogLevel is the least level that is logged.
	LogLevel slog.Level
	// Pprof serves profiles on the admin address.
	Pprof bool

	// Config is the path of the settings file; empty is none.
	Config string
	// PrintConfig asks to print the settings and where they come from instead of
	// serving, see the function of that name.
	PrintConfig bool
	// JSON asks to print them as JSON.
	JSON bool
}

// Origin is a setting as --print-config shows it.
type Origin struct {
	// Name is the key in the settings file, for example privacy.ip_max_ttl.
	Name string `json:"name"`
	// Value is the value as it was written. Of a secret it is the path.
	Value string `json:"value"`
	// Source is where the value comes from: "default", "file PATH:LINE", "env
	// LIMITGATE_X" or "flag --x".
	Source string `json:"source"`
}

// Load puts the settings together: args are the words behind limitgate serve,
// environ is in the form of os.Environ, and readFile, called at most once, reads
// the settings file that a flag or a variable names. A variable that is set to
// nothing counts as an empty value; of a flag that is given twice the last one
// counts.
//
// It returns the settings, where each one comes from in the order of --help, and
// the words from the first one that is not a flag. The error is flag.ErrHelp
// when help is asked for, and otherwise lists every mistake in all sources, one
// a line, each with the place it was made in. A value that is overridden must be
// right as well.
func Load(args, environ []string, readFile func(string) ([]byte, error)) (s *Settings, origins []Origin, rest []string, err error) {
	s = new(Settings)
	t := newTable(s)
	flags, rest, help := readFlags(t, args)
	if help {
		return nil, nil, nil, flag.ErrHelp
	}
	env := readEnvironment(t, environ)
	file := readSettingsFile(t, configPath(env, flags), readFile)
	l := loading{used: map[*setting]given{}, failed: map[string]bool{}}
	for _, src := range []*source{defaults(t), file, env, flags} {
		l.apply(src)
	}
	l.apply(l.defaultsWithRedis(t, s))
	mistakes := slices.Concat(flags.errs(), env.errs(), file.errs(), l.validate(t, s))
	if err := errors.Join(mistakes...); err != nil {
		return nil, nil, nil, err
	}
	return s, l.origins(t), rest, nil
}
