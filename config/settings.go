package config

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Settings are the settings of limitgate serve. Load fills them in; they are not modified
// after that, so they are safe for concurrent reads.
type Settings struct {
	// Listen is the host:port where Redis clients connect.
	Listen string
	// Admin is the host:port of health, metrics and profiles; empty is off.
	Admin string
	// MaxConns is the maximum number of open client connections, 1 to 1,048,576.
	MaxConns int
	// IdleTimeout closes a connection that has sent nothing for this long, at most 168 h;
	// 0 is never.
	IdleTimeout time.Duration
	// MaxConnAge closes a connection that is older when it has no unanswered input, at
	// most 168 h; 0 is never.
	MaxConnAge time.Duration
	// ClusterAnnounce is the host:port that cluster clients receive; if it is empty they
	// receive the address on which they connected.
	ClusterAnnounce string
	// ShutdownTimeout is the maximum time of a drain, 1 ms to 1 h.
	ShutdownTimeout time.Duration
	// TLSCert and TLSKey are the paths of this proxy's certificate and its key, in PEM, with
	// which Listen and Admin speak TLS. TLSClientCA is the path of the authorities that sign
	// clients' certificates, which clients of Listen then must have. Each may be empty.
	TLSCert, TLSKey, TLSClientCA string
	// Users is the path of the file of users, see package users; empty is none.
	Users string
	// JWTKeys is the path or the https URL of the keys of tokens; empty accepts no tokens.
	// JWTIssuer and JWTAudience are what tokens must have, and JWTTenantClaim the name of the
	// claim with the tenant.
	JWTKeys, JWTIssuer, JWTAudience, JWTTenantClaim string
	// BypassKeys is the path or the https URL of the keys of bypass tokens; empty accepts
	// none. BypassRevoked is the path of the list of revoked ones; empty is none.
	BypassKeys, BypassRevoked string
	// UnsafeOpen allows addresses that other hosts can reach.
	UnsafeOpen bool

	// HTTP are the settings of checks over HTTP.
	HTTP HTTP

	// Limits is the path of the limits file, or LimitsTablePrefix and the name of a
	// table; empty is the built-in sample.
	Limits string
	// LimitsCanary is the share of tenants on which a changed file is tried first, in
	// hundredths of a percent, 0 for none. CanaryThreshold is the share of all requests,
	// in the same unit, that it may deny in addition before it is taken back.
	LimitsCanary, CanaryThreshold int
	// LimitsSnapshot is the file to which the limits of a table are saved; empty is none.
	LimitsSnapshot string
	// Updates is the ARN of the topic with the changes of the table, or the URL of a queue
	// that is already subscribed to it.
	Updates string
	// RolloutGate is the configuration in AWS AppConfig with the revision of the table's
	// limits that is tried, see appconfig.ParseName; empty tries none.
	RolloutGate string
	// Cell is the id of the cell of this proxy, which enforces its part of each limit;
	// empty enforces all of it. CellWeight is the cell's weight until the table has
	// another one, 1 to limit.MaxCellWeight, and CellsTable the name of the DynamoDB
	// table in which cells are registered.
	Cell       string
	CellWeight int
	CellsTable string
	// DecisionTimeout is the maximum time of a decision by the store, 1 ms to 60 s.
	DecisionTimeout time.Duration
	// RetryJitter spreads the times at which denied clients retry, at most 1 h; 0 is off.
	RetryJitter time.Duration
	// Instances is the source of the number of proxies that share the limits, for leases
	// and while the store is unavailable.
	Instances Instances
	// BackstopCeiling is the factor by which the number of instances may have fallen, at
	// most, while the store does not answer, 1 to 100.
	BackstopCeiling int
	// BackstopTotalRate is the maximum of units a second that the proxy admits for all
	// tenants together while the store is unavailable, up to backstop.MaxTotalRate; 0 is
	// no bound.
	BackstopTotalRate int
	// DenyCacheSize is the maximum number of the store's denials that are cached, up to
	// 10,000,000; 0 is off. DenyCacheMaxTTL is their maximum age, 1 ms to 60 s.
	DenyCacheSize   int
	DenyCacheMaxTTL time.Duration

	// Redis holds the nodes of a Redis Cluster or of one Redis; without any buckets are kept
	// in memory. RedisSentinel is used instead of it if it has a master.
	Redis         Nodes
	RedisSentinel Sentinel
	// RedisTLS encrypts the connections to Redis, see UsesRedisTLS. RedisTLSCA,
	// RedisTLSCert and RedisTLSKey are paths of PEM files; RedisTLSServerName is the name in
	// the nodes' certificates. Each may be empty, see tlsfiles.ClientOptions.
	RedisTLS                                                  bool
	RedisTLSCA, RedisTLSCert, RedisTLSKey, RedisTLSServerName string
	// RedisUser is the user of Redis, empty for the default user. RedisPasswordFile is the
	// path of its password, RedisPasswordSecret a secret of AWS Secrets Manager.
	RedisUser, RedisPasswordFile, RedisPasswordSecret string
	// RedisPassword is used where no file or secret has the password. No setting sets it, so that
	// no list of processes shows it: limitgate envoy takes it of REDIS_AUTH.
	RedisPassword string
	// RedisAuth is password or iam, and RedisIAMCache the cache for which tokens of AWS IAM
	// are made.
	RedisAuth     string
	RedisIAMCache IAMCache
	// ReadyNeedsStore makes a proxy ready only after it has reached its Redis once.
	ReadyNeedsStore bool
	// RedisIOTimeout is the maximum time of one read or write on a connection to Redis, 1
	// ms to 60 s.
	RedisIOTimeout time.Duration
	// BreakerCooldown is the minimum time without calls to a master of Redis that does
	// not answer, 10 ms to 60 s.
	BreakerCooldown time.Duration
	// RedisDeclaredKeys makes every script call declare its keys, all in one hash slot.
	RedisDeclaredKeys bool
	// MemoryBuckets is the capacity of the memory store, 1,000 to 100,000,000 buckets.
	MemoryBuckets int

	// PrivacyIPSecretFile is the path of the secret with which addresses are hashed, see
	// ReadSecret; empty leaves the choice to the program.
	PrivacyIPSecretFile string
	// PrivacyIPSecretPreviousFile is the path of the secret before, whose buckets count too
	// while it is being replaced; empty is none.
	PrivacyIPSecretPreviousFile string
	// PrivacyIPMaxTTL is the maximum time that a hashed address is kept, 1 s to 8,760 h.
	PrivacyIPMaxTTL time.Duration
	// PrivacyIPv4Prefix and PrivacyIPv6Prefix are the numbers of bits of an address that
	// identify a client, 1 to 32 and 1 to 128.
	PrivacyIPv4Prefix, PrivacyIPv6Prefix int

	// LogFormat is text or json.
	LogFormat string
	// LogLevel is the minimum level that is logged.
	LogLevel slog.Level
	// LogDenials logs a sample of the denials.
	LogDenials bool
	// Pprof serves profiles on the admin address.
	Pprof bool

	// RLS are the settings of Envoy's rate limit service.
	RLS RLS

	// EMF are the settings of lines in CloudWatch's embedded metric format.
	EMF EMF

	// WebhookURL is the https URL, or the http URL of this machine, that receives events, and
	// WebhookSecretFile the path of the secrets that sign them, see ReadWebhookSecrets. Both are
	// set, or both empty.
	WebhookURL, WebhookSecretFile string
	// OTLPEndpoint is the URL of a collector of traces; empty is off.
	OTLPEndpoint string

	// Config is the path of the settings file; empty is none.
	Config string
	// PrintConfig asks to print the settings and their sources instead of serving, see
	// the function of that name.
	PrintConfig bool
	// JSON asks to print them as JSON.
	JSON bool

	// WrittenAs are the flags and variables, and the lines of the settings file, that gave settings, by the
	// name of a setting; those with their default are not there.
	WrittenAs map[string]string

	// Warnings are sentences about names of settings that have changed, and about values that
	// are seldom meant.
	Warnings []string
}

// NameOf returns how the user named a setting: by its flag, unless WrittenAs has another name.
func (s *Settings) NameOf(name string) string {
	return cmp.Or(s.WrittenAs[name], newTable(new(Settings)).named(name).flag())
}

// flagsOfRedis match the settings of Redis in advice about it.
var flagsOfRedis = regexp.MustCompile(`--redis(-[a-z]+)*`)

// flagsOfLogin are the parts of advice that name both settings of a login, which may be one variable.
var flagsOfLogin = []string{
	"--redis-password-file, and --redis-user unless it is that of the default user",
	"--redis-user and the file of --redis-password-file", "--redis-password-file and --redis-user",
}

// Named returns advice about Redis with the settings as the user named them, in place of their flags.
func (s *Settings) Named(advice string) string {
	if s.Redis.TLS {
		advice = strings.ReplaceAll(advice, "leave out --redis-tls", "write redis:// in place of rediss://")
	}
	if login := s.WrittenAs["redis.password_file"]; login != "" && login == s.WrittenAs["redis.user"] {
		for _, both := range flagsOfLogin {
			advice = strings.ReplaceAll(advice, both, login)
		}
	}
	t := newTable(new(Settings))
	return flagsOfRedis.ReplaceAllStringFunc(advice, func(flag string) string {
		if r, _ := t.find((*setting).flag, flagName, flag); r != nil {
			return s.NameOf(r.name)
		}
		return flag
	})
}

// NeedsAuth reports whether clients must authenticate.
func (s *Settings) NeedsAuth() bool { return s.Users != "" || s.JWTKeys != "" }

// LocalOnly reports whether only this machine can reach Listen and HTTP.Listen.
func (s *Settings) LocalOnly() bool {
	http := s.HTTP.Listen
	return isLoopback(s.Listen) && (http == "" || strings.HasPrefix(http, UnixPrefix) || isLoopback(http))
}

// IsOpen reports whether other hosts can reach one of them without a certificate, and UnsafeOpen
// does not allow that.
func (s *Settings) IsOpen() bool {
	return !s.LocalOnly() && s.TLSClientCA == "" && !s.UnsafeOpen
}

// EnvoyAlone reports whether Envoy's rate limit service may be all that is asked: no limits are set but its
// own.
func (s *Settings) EnvoyAlone() bool {
	return s.Limits == "" && s.RLS.Listen != "" && len(s.RLS.Native) == 0
}

// UsesRedis reports whether buckets are in a Redis.
func (s *Settings) UsesRedis() bool { return len(s.Redis.Addrs) > 0 || s.RedisSentinel.Master != "" }

// UsesRedisTLS reports whether the connections to Redis are encrypted.
func (s *Settings) UsesRedisTLS() bool {
	return s.RedisTLS || s.Redis.TLS || s.RedisSentinel.Nodes.TLS
}

// mostPatience is the longest decision timeout that needs no warning: clients wait as long for a
// limiter that is down.
const mostPatience = 100 * time.Millisecond

// PatienceWarnings returns a sentence about a decision timeout that is long, and nothing about
// another one.
func PatienceWarnings(timeout time.Duration) []string {
	if timeout <= mostPatience {
		return nil
	}
	return []string{fmt.Sprintf("--decision-timeout %s: while a master is down a check may take as long", timeout)}
}

// Origin is a setting as --print-config shows it.
type Origin struct {
	// Name is the key in the settings file, for example privacy.ip_max_ttl.
	Name string `json:"name"`
	// Value is the value as written by the user. For a secret it is the path.
	Value string `json:"value"`
	// Source is the source of the value: "default", "file PATH:LINE", "env LIMITGATE_X"
	// or "flag --x".
	Source string `json:"source"`
}

// Load reads the settings: args are the words after limitgate serve, environ is in the
// form of os.Environ, and readFile, called at most once, reads the settings file that a
// flag or a variable names. A variable that is set to nothing counts as an empty value;
// of a flag that is given twice the last one counts, but a list that is given twice is a mistake.
//
// It returns the settings, the origin of each one in the order of --help, and the words
// from the first one that is not a flag. The error is flag.ErrHelp when help is
// requested, and otherwise lists every mistake in all sources, one a line, each with its
// place. An overridden value must be valid as well. Words that are no flags are returned beside
// such an error, too.
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
		return nil, nil, rest, err
	}
	s.WrittenAs = l.writtenAs()
	s.Warnings = slices.Concat(file.warnings, env.warnings, flags.warnings)
	s.Warnings = append(s.Warnings, l.warnings(t, s)...)
	return s, l.origins(t), rest, nil
}
