package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/internal/logthrottle"
	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/limit"
)

// Store decides on a Redis Cluster or a single Redis. It is safe for concurrent use.
type Store struct {
	opts   Options
	script script
	top    atomic.Pointer[topology]
	topErr atomic.Pointer[error] // the error of the last fetch of the topology, nil if it succeeded
	reload chan struct{}         // capacity 1: a pending reload covers further requests
	counts counters
	// badBuckets logs keys whose values are not buckets.
	badBuckets bucketLog
	discovered discovered
	instances  atomic.Int64     // from the last heartbeat; 0 before
	counted    atomic.Bool      // instances has changed since the marks were written
	marks      map[string]*mark // by key; only Run uses it
	orphans    []orphan         // only Run uses it
	// topologyLog and secretLog throttle the log lines on the topology and on the secret.
	topologyLog, secretLog logthrottle.Throttle

	secret     atomic.Pointer[[]byte] // the agreed secret
	secretKept atomic.Int64           // time of the last prolongation, in seconds
	refused    error                  // of the node that had no memory left for the secret; only Open and Run use it
	secretless time.Time              // since when the store has been seen without a secret; only Run uses it
	// reached is closed after the first fetch of a topology.
	reached chan struct{}
}

// Open connects to the store and fetches its topology. It fails if no address answers,
// unless Options.StartWithout is set. It fails in any case if a node can be reached that
// may not decide: a replica without a master, a node that requires a password or forbids a
// needed command or key, or another kind of server. The error has a sentence for each address. The
// store decides while Run runs; Close releases its connections.
func Open(ctx context.Context, opts Options) (*Store, error) {
	return openWith(ctx, opts, newDecideScript(writeFormat))
}

func openWith(ctx context.Context, opts Options, sc script) (*Store, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	s := &Store{
		opts: opts, script: sc, reload: make(chan struct{}, 1), marks: map[string]*mark{}, reached: make(chan struct{}),
		topologyLog: logthrottle.Throttle{Period: reportPause}, secretLog: logthrottle.Throttle{Period: reportPause},
	}
	t, err := s.discover(ctx, nil, s.agreeAtOnce)
	if err != nil {
		if t, err = s.startWithout(ctx, err); err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
		s.topologyLog.Allow() // the caller has the error for its log
	}
	s.publish(t)
	connected := t.connect(ctx, nil)
	if err := s.forbidden(ctx, t, connected); err != nil {
		return nil, fmt.Errorf("open store: %w", errors.Join(err, s.Close()))
	}
	reportConnected(connected)
	return s, nil
}

// publish makes t the current topology.
func (s *Store) publish(t *topology) {
	s.logUnowned(s.top.Swap(t), t)
	select {
	case <-s.reached:
	default:
		if len(t.nodes) > 0 {
			close(s.reached)
		}
	}
}

// Reached returns a channel that is closed once the store has been reached: by Open, or by
// Run later.
func (s *Store) Reached() <-chan struct{} { return s.reached }

// connect connects the pipelines to the nodes that old does not have, all concurrently, and returns the outcomes. The
// pipelines themselves retry after a failure.
func (t *topology) connect(ctx context.Context, old *topology) map[*node]error {
	var mu sync.Mutex // guards outcomes
	outcomes := map[*node]error{}
	var wg sync.WaitGroup
	for addr, n := range t.nodes {
		if old == nil || old.nodes[addr] != n {
			wg.Go(func() {
				err := n.pipeline.connect(ctx)
				mu.Lock()
				defer mu.Unlock()
				outcomes[n] = err
			})
		}
	}
	wg.Wait()
	return outcomes
}

// reportConnected reports the outcomes of connect.
func reportConnected(outcomes map[*node]error) {
	for n, err := range outcomes {
		n.reportHealth(err)
	}
}

// Run keeps the pipelines to the nodes connected, reloads the topology after failures and
// periodically, and makes late refunds, until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	s.runPipelines(ctx, &wg, nil)
	tick, soon := time.NewTicker(s.opts.ReloadInterval), time.NewTicker(openReload)
	defer tick.Stop()
	defer soon.Stop()
	s.checkDataLoss(ctx, true)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.checkDataLoss(ctx, false)
		case <-soon.C:
			if s.counted.Swap(false) {
				s.checkDataLoss(ctx, false)
			}
			open := s.anyOpen()
			if open || s.anyLate() {
				s.probeIdle()
			}
			if s.anyRefuses() {
				s.probeWrites(ctx)
			}
			if !open && !s.isEmpty() {
				continue
			}
		case <-s.reload:
		}
		s.reloadTopology(ctx, &wg)
		s.keepSecret(ctx)
		run.Sleep(ctx, s.pauseOfReloads())
	}
}

// runPipelines starts the pipelines of nodes that old does not have, and stops those of nodes
// that only old has.
func (s *Store) runPipelines(ctx context.Context, wg *sync.WaitGroup, old *topology) {
	t := s.top.Load()
	for addr, n := range t.nodes {
		if old == nil || old.nodes[addr] != n {
			running, stop := context.WithCancel(ctx)
			n.stop = stop
			wg.Go(func() { n.pipeline.run(running) })
			wg.Go(func() { s.refundLate(running, n) })
		}
	}
	if old == nil {
		return
	}
	for addr, n := range old.nodes {
		if t.nodes[addr] != n {
			s.addOrphan(old, n)
			n.stop()
			_ = n.client.Close()
		}
	}
	s.adoptOrphans(t)
}

func (s *Store) reloadTopology(ctx context.Context, wg *sync.WaitGroup) {
	s.counts.reloads.Add(1)
	asking, cancel := context.WithTimeout(ctx, s.opts.ReloadInterval)
	defer cancel()
	old := s.top.Load()
	t, err := s.discover(asking, old, s.agreeLate)
	if err == nil {
		s.topErr.Store(nil)
	} else {
		s.topErr.Store(&err)
		if !errors.Is(err, errNoSecret) {
			s.secretless = time.Time{}
		}
		if ctx.Err() == nil && s.topologyLog.Allow() {
			s.opts.Log.Warn("failed to fetch the topology of the store", "error", err)
		}
		if old.cluster || !s.lostMaster(err, old) {
			return
		}
		// The single Redis has become a replica. Its connections are open and would go on
		// answering. The empty topology owns no slot until there is a master.
		if len(old.nodes) > 0 {
			s.opts.Log.Warn("no master of the store is known, using backstop", "error", err)
		}
		for _, n := range old.nodes {
			n.sick.CompareAndSwap(0, time.Now().UnixNano()) // so that the end of this has a line
		}
		t = &topology{nodes: map[string]*node{}}
	}
	reportConnected(t.connect(asking, old))
	s.publish(t)
	s.runPipelines(ctx, wg, old)
	if t.slots != old.slots {
		s.assertMasters(asking, t, old)
	}
}

// lostMaster reports whether err, of a fetch of the topology, means that the single Redis of old is no
// master. A replica of it that refuses means nothing while it does not answer, unless Sentinels named
// that replica.
func (s *Store) lostMaster(err error, old *topology) bool {
	var all topologyErrors
	if s.opts.Sentinel != "" || !errors.As(err, &all) {
		return errors.Is(err, ErrNotMaster)
	}
	return slices.ContainsFunc(all, func(e topologyError) bool {
		return old.nodes[e.addr] != nil && errors.Is(e.err, ErrNotMaster)
	})
}

// assertMasters checks the role of nodes that keep their connections although the topology
// has changed. It closes the connections to those that are not masters.
func (s *Store) assertMasters(ctx context.Context, t, old *topology) {
	var wg sync.WaitGroup
	for addr, n := range t.nodes {
		if old.nodes[addr] == n {
			wg.Go(func() {
				if err := s.countRole(assertMaster(ctx, n.client, addr)); errors.Is(err, ErrNotMaster) {
					n.reportHealth(err)
					n.pipeline.drop()
				}
			})
		}
	}
	wg.Wait()
}

// Close closes all connections. Run must have returned.
func (s *Store) Close() error {
	for _, n := range s.top.Load().nodes {
		n.pipeline.disconnect(errDown)
		if err := n.client.Close(); err != nil {
			return fmt.Errorf("close store: %w", err)
		}
	}
	return nil
}

// recordFailure counts a call that was left undecided, for n too unless it is nil, and
// requests a reload of the topology if that may help.
func (s *Store) recordFailure(n *node, err error, items []limit.Item) {
	k := kindOf(err)
	s.counts.failures[k].Add(1)
	if n != nil {
		n.failures[k].Add(1)
	}
	if k.ofBucket() {
		s.badBuckets.report(s.opts.Log, items, err)
	}
	if k.needsReload() {
		s.requestReload()
	}
}

// redirected counts a call that follows a redirect.
func (s *Store) redirected(why error) {
	if k := kindOf(why); k.needsReload() || k == KindTryAgain {
		s.counts.redirects[k].Add(1)
		s.requestReload()
	}
}

// requestReload makes Run reload the topology.
func (s *Store) requestReload() {
	select {
	case s.reload <- struct{}{}:
	default:
	}
}

// Stats returns a snapshot of the counters.
func (s *Store) Stats() Stats {
	st := Stats{
		ScriptLoads: s.counts.scriptLoads.Load(),
		RefundsLost: s.counts.refundsLost.Load(),
		Reloads:     s.counts.reloads.Load(),
		Resets:      s.counts.resets.Load(),
		RoleErrors:  s.counts.roleErrors.Load(),
	}
	for i := range st.Undecided {
		st.Undecided[i] = s.counts.failures[i].Load()
		st.Redirects[i] = s.counts.redirects[i].Load()
	}
	return st
}

// Locate returns the address of the node that holds an item's bucket.
func (s *Store) Locate(it *limit.Item) string {
	if n := s.top.Load().owner(it.HashSlot()); n != nil {
		return n.addr
	}
	return ""
}

// Saturated reports whether the pipeline to the node of an item's bucket is so full that
// checks wait for several batches.
func (s *Store) Saturated(it *limit.Item) bool {
	n := s.top.Load().nodeOf(it)
	return n != nil && n.pipeline.saturated.Load()
}

// IsCluster reports whether the store is a Redis Cluster.
func (s *Store) IsCluster() bool { return s.top.Load().cluster }

// Ping pings every master. It returns the error of PingShards.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.PingShards(ctx)
	return err
}
