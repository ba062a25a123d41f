package cluster

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// Options configure a Store.
type Options struct {
	// Addrs are the seed addresses, host:port. One that answers is enough.
	Addrs []string
	// TLS, unless nil, returns the configuration of a connection to a host. Connections are
	// not encrypted without it.
	TLS func(host string) (*tls.Config, error)
	// Credentials, unless nil, supply the user and the password of each connection.
	Credentials Credentials
	// Sentinel, unless empty, is the name of the master that the Sentinels at Addrs watch: the
	// store is that single Redis.
	Sentinel string
	// DB is the database of a single Redis. A cluster has only 0.
	DB int
	// MaxConnAge is the largest age of a connection; it is replaced at a random age from six
	// elevenths of it on. Zero means never.
	MaxConnAge time.Duration
	// StartWithout opens a store that cannot be reached: it leaves every call undecided
	// until Run has reached it. Errors that only an operator can fix are returned even so,
	// see Open.
	StartWithout bool
	// Secret is the secret that this proxy proposes for hashing addresses, or nil if the
	// secret is not agreed on through the store. Adopt receives the agreed secret before the
	// store decides anything: from Open, or from Run if Open did not reach the store. It
	// receives another one, from Run, if the store lost the secret and a proxy replaced it.
	Secret []byte
	Adopt  func(secret []byte)
	// IOTimeout bounds the wait for a reply before the connection is closed. Decisions have
	// deadlines of their own, which it should not be shorter than. Zero, here and below,
	// means the default.
	IOTimeout time.Duration
	// DialTimeout bounds opening a connection.
	DialTimeout time.Duration
	// PoolSize bounds the connections to each node, except that of its pipeline, which
	// decisions use.
	PoolSize int
	// DecisionTimeout bounds a probe of an open breaker without a caller, whose deadline other calls have.
	DecisionTimeout time.Duration
	// ReloadInterval is the interval of reloads of the topology. Failures trigger a reload
	// at once.
	ReloadInterval time.Duration
	// ToLoop, unless nil, moves a connection that decides into an event loop, which reads its
	// replies from then on: if it fails, or the connection is encrypted, a goroutine reads
	// them. The loop must run until Run has returned.
	ToLoop func(*net.TCPConn) (Socket, error)
	// SeparateChecks disables the coalescing of equal checks, for tests that compare the two:
	// each has a decision of its own in the script. Otherwise one decision returns how many
	// are granted.
	SeparateChecks bool
	// DeclaredKeys makes every script call declare its keys, all in one slot, even if the
	// nodes of a cluster accept calls with undeclared keys of several slots.
	DeclaredKeys bool
	// Cooldown is the minimum time for which the breaker of a shard stays open, before one
	// call probes the shard.
	Cooldown time.Duration
	// OnOutage, unless nil, is called when the breaker of a shard closes. It receives the
	// duration of the outage, from the first failed call to the first that succeeded.
	OnOutage func(time.Duration)
	// Late, unless nil, is called with calls that were decided after their callers had
	// left, with their verdicts and granted lease units, and with the time they were sent.
	// It is called on any goroutine and must not keep the items.
	Late func(call []limit.Item, sent time.Time)
	// Returned, unless nil, is called with the names of buckets that units were returned to
	// after Store.Refund or Store.Settle had returned. It is called on any goroutine.
	Returned func(names []string)
	Log      *slog.Logger
}

// The defaults of Options.
const (
	DefaultIOTimeout       = 250 * time.Millisecond
	DefaultDialTimeout     = 300 * time.Millisecond
	DefaultPoolSize        = 4
	DefaultReloadInterval  = 5 * time.Second
	DefaultDecisionTimeout = 5 * time.Millisecond
	// openReload is the interval of reloads while a breaker is open: no call is made then
	// whose reply could reveal a promoted replica.
	openReload = 500 * time.Millisecond
	// reloadPause is the least time between two reloads.
	reloadPause = 100 * time.Millisecond
)

func (o *Options) setDefaults() error {
	if len(o.Addrs) == 0 {
		return errors.New("open store: no address given")
	}
	if o.IOTimeout <= 0 {
		o.IOTimeout = DefaultIOTimeout
	}
	if o.DialTimeout <= 0 {
		o.DialTimeout = DefaultDialTimeout
	}
	if o.PoolSize <= 0 {
		o.PoolSize = DefaultPoolSize
	}
	if o.DecisionTimeout <= 0 {
		o.DecisionTimeout = DefaultDecisionTimeout
	}
	if o.ReloadInterval <= 0 {
		o.ReloadInterval = DefaultReloadInterval
	}
	if o.Adopt == nil {
		o.Adopt = func([]byte) {}
	}
	if o.OnOutage == nil {
		o.OnOutage = func(time.Duration) {}
	}
	if o.Late == nil {
		o.Late = func([]limit.Item, time.Time) {}
	}
	if o.Returned == nil {
		o.Returned = func([]string) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}
