package cluster

import (
	"errors"
	"log/slog"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// Options configure a Store.
type Options struct {
	// Addrs are the addresses to begin with, host:port. One that answers is
	// enough.
	Addrs []string
	// StartWithout opens a store that cannot be reached: it leaves every call undecided until
	// Run has reached it. What only a person can mend fails even so, see Open.
	StartWithout bool
	// Secret is what this proxy proposes to hash addresses with, nil where that is not agreed
	// on through the store. Adopt gets the secret that was agreed on, once and before the
	// store decides anything: from Open, or from Run where Open did not reach the store.
	Secret []byte
	Adopt  func(secret []byte)
	// IOTimeout bounds how long a connection may wait for a reply before it is
	// given up; decisions have deadlines of their own, which it should not be
	// shorter than. Zero, here and below, means the default.
	IOTimeout time.Duration
	// DialTimeout bounds making a connection.
	DialTimeout time.Duration
	// PoolSize bounds the connections to each node beside that of its lane, which
	// decisions take.
	PoolSize int
	// ReloadInterval is how often the topology is asked for when nothing went
	// wrong; trouble asks for it at once.
	ReloadInterval time.Duration
	// SeparateChecks keeps equal checks of a batch apart, each with a decision of
	// its own in the script; else one decision says how many are granted.
	SeparateChecks bool
	// DeclaredKeys makes every script call declare its keys, all in one slot, even
	// where the nodes of a cluster would take those of all their slots at once.
	DeclaredKeys bool
	// Cooldown is how long the breaker of a shard stays open at the least, before
	// one call tries whether the shard is well again.
	Cooldown time.Duration
	// OnOutage, unless nil, is told how long a shard was out, from the first failed
	// call to the first that succeeded, when its breaker closes.
	OnOutage func(time.Duration)
	// Late, unless nil, is told of calls that were decided after their callers had
	// left, with verdicts and what was granted ahead, and when they were sent. It is
	// called on any goroutine and must not keep the items.
	Late func(call []limit.Item, sent time.Time)
	// Returned, unless nil, is called with the names of buckets that units came back to
	// after Store.Refund, or Store.Settle, had returned; on any goroutine.
	Returned func(names []string)
	Log      *slog.Logger
}

// The defaults of Options.
const (
	DefaultIOTimeout      = 250 * time.Millisecond
	DefaultDialTimeout    = 300 * time.Millisecond
	DefaultPoolSize       = 4
	DefaultReloadInterval = 5 * time.Second
	// openReload is how often the topology is asked for while a breaker is open: no
	// call is made then that could tell of a promoted replica.
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
