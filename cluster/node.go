package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/logthrottle"
	"github.com/limitgate/limitgate/limit"
)

// ErrNotMaster is returned for a node that is not a master: replicas never decide.
var ErrNotMaster = errors.New("the node is not a master")

// node is one master with its connections: decisions use the pipeline, everything else the
// client.
type node struct {
	addr     string
	client   *redis.Client
	pipeline *pipeline
	late     chan []limit.Item // refunds whose callers have left
	// breaker blocks calls while the node does not answer. changes counts its transitions.
	breaker  *breaker.Breaker
	changes  [3]atomic.Int64 // by the new state
	failures [numKinds]atomic.Int64
	log      *slog.Logger
	// stop ends run of the pipeline; only Store.Run uses it.
	stop context.CancelFunc
	// sick is when the node began to fail, in nanoseconds since the epoch, and 0 while it does not fail.
	// It is read without health too.
	sick     atomic.Int64
	reported logthrottle.Throttle
	health   sync.Mutex // guards degraded, refusal, refusedAt and unlogged, and changes of sick
	// degraded is set while the last line about health in the log reports the node as failing.
	degraded bool
	// refusal is the last error of a node that refuses all writes, until it has recovered, and refusedAt its time.
	refusal   error
	refusedAt time.Time
	unlogged  int // the outages without a line since the last one that has one
}

// clientOptions returns the options of every client connection: there are no retries, and
// the deadlines of contexts apply.
func (o *Options) clientOptions(addr string) *redis.Options {
	return &redis.Options{
		Dialer: func(ctx context.Context, _, addr string) (net.Conn, error) {
			conn, err := o.connect(ctx, addr)
			if err != nil {
				return nil, err
			}
			return bound(conn), nil
		},
		// A random age from minConnAge to MaxConnAge, as that of pipelines.
		ConnMaxLifetime: (o.MaxConnAge + o.minConnAge()) / 2, ConnMaxLifetimeJitter: (o.MaxConnAge - o.minConnAge()) / 2,
		Addr:                     addr,
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		MaxRetries:               -1,
		DialerRetries:            1,
		ContextTimeoutEnabled:    true,
		DialTimeout:              o.DialTimeout,
		ReadTimeout:              o.IOTimeout,
		WriteTimeout:             o.IOTimeout,
		PoolTimeout:              time.Minute, // the context's deadline comes first
		PoolSize:                 o.PoolSize,
		PipelinePoolSize:         -1,
	}
}

// newClient returns a client. Each of its connections begins with a check of the role.
func (s *Store) newClient(addr string) *redis.Client {
	opts := s.opts.clientOptions(addr)
	opts.OnConnect = func(ctx context.Context, c *redis.Conn) error { return s.countRole(assertMaster(ctx, c, addr)) }
	return redis.NewClient(opts)
}

// newNode returns a node. Each of its connections begins with a check of the role.
func (s *Store) newNode(addr string, cluster bool) *node {
	n := &node{addr: addr, client: s.newClient(addr), log: s.opts.Log, late: make(chan []limit.Item, lateRefunds), reported: logthrottle.Throttle{Period: healthPeriod, Lines: healthLines}}
	n.pipeline = &pipeline{
		free:    make([]*batch, 0, maxInFlight),
		connErr: errDown,
		script:  s.script, toLoop: s.opts.ToLoop, ioTimeout: s.opts.IOTimeout, connAge: s.opts.connAge,
		onFailure: func(err error, items []limit.Item) { s.recordFailure(n, err, items) }, report: n.reportHealth, onScriptLoad: func() { s.counts.scriptLoads.Add(1) },
	}
	dialer := s.newDialer(addr, cluster)
	n.pipeline.dial = func(ctx context.Context) (*nodeConn, error) {
		conn, err := dialer.dial(ctx)
		return conn, s.countRole(err)
	}
	n.pipeline.notifyLater = func(nr *nodeRequest) { n.pipeline.answered = append(n.pipeline.answered, nr) }
	n.breaker = breaker.New(breaker.Options{
		Cooldown: s.opts.Cooldown, ProbeTimeout: s.opts.IOTimeout,
		Changed: func(t breaker.Transition) { n.changed(t, s.opts.OnOutage) },
	})
	n.pipeline.record = func(o breaker.Outcome) { n.breaker.Record(time.Now(), o) }
	for range maxInFlight {
		b := newBatch()
		b.late, b.returned, b.onFailure = s.opts.Late, s.opts.Returned, n.pipeline.failureOf(b)
		n.pipeline.free = append(n.pipeline.free, b)
	}
	return n
}

// allow reports whether a call may be made. A peek never probes an open breaker.
func (n *node) allow(what op, now time.Time) bool {
	if what == opPeek {
		return n.breaker.State() == breaker.Closed
	}
	return n.breaker.Allow(now)
}

// changed logs and counts a transition of the breaker.
func (n *node) changed(t breaker.Transition, outage func(time.Duration)) {
	n.changes[t.To].Add(1)
	switch {
	case t.To == breaker.Closed:
		outage(t.Outage)
		n.log.Info("shard breaker closed", "node", n.addr, "outage", t.Outage)
	case t.From == breaker.Closed:
		n.log.Warn("shard breaker open", append([]any{"node", n.addr}, failureOf(t.Err)...)...)
	}
}

// orphan is a failing master that the topology no longer has, and a slot that it owned.
type orphan struct {
	*node
	slot  uint16
	since time.Time // when its first call failed
	open  bool      // its breaker was open
}

// addOrphan adds a master of old that the topology no longer has, if it fails.
func (s *Store) addOrphan(old *topology, n *node) {
	slot, ok := old.slotOf(n)
	st, sick := n.breaker.Status(), n.sick.Load()
	switch {
	case !ok:
	case st.State != breaker.Closed:
		s.orphans = append(s.orphans, orphan{n, slot, st.Since, true})
	case sick != 0:
		s.orphans = append(s.orphans, orphan{n, slot, time.Unix(0, sick), false})
	}
}

// adoptOrphans reports the end of the outages of orphans whose slots have a master again.
func (s *Store) adoptOrphans(t *topology) {
	s.orphans = slices.DeleteFunc(s.orphans, func(n orphan) bool {
		by := t.owner(n.slot)
		if by == nil {
			return false
		}
		d := time.Since(n.since)
		if n.open {
			s.opts.OnOutage(d)
		}
		if by.addr == n.addr && !t.cluster { // a single Redis that was a replica for a while
			n.log.Info("store recovered", "node", n.addr, "outage", d)
			return true
		}
		if by.addr == n.addr { // a cluster that was made anew
			n.log.Info("unresponsive master has its hash slots again", "node", n.addr, "outage", d)
			return true
		}
		n.log.Info("unresponsive master replaced", "node", n.addr, "by", by.addr, "outage", d)
		return true
	})
}

// A node that alternates between failures and answers has healthLines pairs of lines in healthPeriod: the second one
// for an outage behind a short failure. A further outage has its line when the period is over. That about an open
// breaker does not wait.
const (
	healthPeriod = 10 * time.Second
	healthLines  = 2
)

// refusalQuiet is for how long a node that has refused a write has to refuse none until any answered call means that it
// has recovered: calls that only read succeed meanwhile, and probeWrites writes more often.
const refusalQuiet = 5 * time.Second

// reportWrite ends that the node refuses writes, as it has taken one.
func (n *node) reportWrite() {
	if _, err := n.refuses(); err == nil {
		return
	}
	n.health.Lock()
	n.refusedAt = time.Time{}
	n.health.Unlock()
	n.reportHealth(nil)
}

// reportHealth logs when a node starts to fail and when it recovers. A nil error means healthy. The next line counts the
// outages that have none.
func (n *node) reportHealth(err error) {
	if err == nil && n.sick.Load() == 0 {
		return // the usual case, without a lock
	}
	n.health.Lock()
	defer n.health.Unlock()
	switch {
	case err == nil && time.Since(n.refusedAt) < refusalQuiet:
	case err == nil:
		n.sick.Store(0)
		n.refusal = nil
		if n.degraded {
			n.degraded = false
			n.log.Info("store recovered", "node", n.addr)
		}
	default:
		if RefusesWrites(err) != "" {
			n.refusal, n.refusedAt = err, time.Now()
		} else if kindOf(err) == KindReadOnly { // a replica answers calls that only read
			n.refusedAt = time.Now()
		}
		began := n.sick.CompareAndSwap(0, time.Now().UnixNano())
		switch {
		case n.degraded:
		case n.reported.Allow():
			attrs := append([]any{"node", n.addr}, failureOf(err)...)
			if !began {
				n.unlogged-- // the present one
			}
			if n.unlogged > 0 {
				attrs = append(attrs, "unlogged_outages", n.unlogged)
			}
			if n.reported.Used() {
				attrs = append(attrs, "no_more_lines_for", healthPeriod)
			}
			n.degraded, n.unlogged = true, 0
			n.log.Warn("store degraded, using backstop", attrs...)
		case began:
			n.unlogged++
		}
	}
}

// refuses returns since when a node fails that refuses all writes, and has not recovered, and its error; or nil.
func (n *node) refuses() (since time.Time, err error) {
	if n.sick.Load() == 0 {
		return since, nil
	}
	n.health.Lock()
	defer n.health.Unlock()
	if n.refusal == nil {
		return since, nil
	}
	return time.Unix(0, n.sick.Load()), n.refusal
}

// failureOf returns the attributes of a line about the failure of a call.
func failureOf(err error) []any {
	attrs := []any{"kind", kindOf(err).String(), "error", describe(err)}
	if advice := Advice(err); advice != "" {
		attrs = append(attrs, "advice", advice)
	}
	return attrs
}

// reportPause is the least time between two reports of the topology or of the secret.
const reportPause = time.Minute

// cmdDoer is a connection or a pool of connections.
type cmdDoer interface {
	Do(ctx context.Context, args ...any) *redis.Cmd
}

// countRole counts err if it is ErrNotMaster, and returns it.
func (s *Store) countRole(err error) error {
	if errors.Is(err, ErrNotMaster) {
		s.counts.roleErrors.Add(1)
	}
	return err
}

func assertMaster(ctx context.Context, c cmdDoer, addr string) error {
	reply, err := c.Do(ctx, "ROLE").Slice()
	if err != nil {
		return fmt.Errorf("read role of %s: %w", addr, err)
	}
	if len(reply) == 0 || reply[0] != "master" {
		return fmt.Errorf("%s: %w, its role is %v", addr, ErrNotMaster, first(reply))
	}
	return nil
}

func first(reply []any) any {
	if len(reply) == 0 {
		return "unknown"
	}
	return reply[0]
}
