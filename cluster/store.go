package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// Store decides on a Redis Cluster or a single Redis. Any number of goroutines
// may use it.
type Store struct {
	opts   Options
	script script
	top    atomic.Pointer[topology]
	topErr atomic.Pointer[error] // why it could not be learnt the last time, nil when it could
	reload chan struct{}         // one slot: a reload that is wanted already covers the next wish
	counts counters
	// badBuckets logs keys that hold something else than a bucket.
	badBuckets bucketLog
	discovered discovered
	instances  atomic.Int64    // by the last heartbeat; 0 before
	counted    atomic.Bool     // that has changed, and the marks do not say so yet
	marks      map[string]bool // that were seen, by key; only Run uses it
	// topologyLog and secretLog part the log's lines on the topology and on the secret.
	topologyLog, secretLog logThrottle

	secret     atomic.Pointer[[]byte] // agreed on
	secretKept atomic.Int64           // when it was last prolonged, in seconds
	secretless time.Time              // since when the store is seen without one; only Run uses it
	// reached is closed once a topology has been learnt.
	reached chan struct{}
}

// Open connects to the store and finds out what it is. It fails when no address answers,
// unless Options.StartWithout is set, and in any case when a node that can be reached is none
// that may decide: a replica where there is no master, one that wants a password or forbids
// what is needed, or another kind of server. The error has a sentence for each address.
// Decisions are made while Run runs; Close ends what is left behind.
func Open(ctx context.Context, opts Options) (*Store, error) {
	return openWith(ctx, opts, newDecideScript(writeFormat))
}

func openWith(ctx context.Context, opts Options, sc script) (*Store, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	s := &Store{opts: opts, script: sc, reload: make(chan struct{}, 1), marks: map[string]bool{}, reached: make(chan struct{})}
	t, err := s.discover(ctx, nil, s.agreeAtOnce)
	if err != nil {
		if t, err = s.startWithout(ctx, err); err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
	}
	s.publish(t)
	t.connect(ctx, nil)
	return s, nil
}

// publish makes a topology the one in use.
func (s *Store) publish(t *topology) {
	s.top.Store(t)
	select {
	case <-s.reached:
	default:
		if len(t.nodes) > 0 {
			close(s.reached)
		}
	}
}

// Reached is closed once the store has been reached: by Open, or by Run later.
func (s *Store) Reached() <-chan struct{} { return s.reached }

// connect makes the lanes' connections to the nodes that old does not have, all
// at the same time. What fails is left to the lanes themselves.
func (t *topology) connect(ctx context.Context, old *topology) {
	var wg sync.WaitGroup
	for addr, n := range t.nodes {
		if old == nil || old.nodes[addr] != n {
			wg.Go(func() { n.reportHealth(n.pipeline.connect(ctx)) })
		}
	}
	wg.Wait()
}

// Run keeps the lanes to the nodes, reloads the topology when trouble asks for
// it, and now and then, and gives back late what could not be given back in
// time, until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	s.runLanes(ctx, &wg, nil)
	tick, soon := time.NewTicker(s.opts.ReloadInterval), time.NewTicker(openReload)
	defer tick.Stop()
	defer soon.Stop()
	s.checkDataLoss(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.checkDataLoss(ctx)
		case <-soon.C:
			if s.counted.Swap(false) {
				s.checkDataLoss(ctx)
			}
			if !s.anyOpen() && !s.isEmpty() {
				continue
			}
		case <-s.reload:
		}
		s.reloadTopology(ctx, &wg)
		s.keepSecret(ctx)
		wait(ctx, s.pauseOfReloads())
	}
}

// runLanes starts the lanes of nodes that old does not have, and ends those of
// nodes that only old has.
func (s *Store) runLanes(ctx context.Context, wg *sync.WaitGroup, old *topology) {
	t := s.top.Load()
	for addr, n := range t.nodes {
		if old == nil || old.nodes[addr] != n {
			lane, stop := context.WithCancel(ctx)
			n.stop = stop
			wg.Go(func() { n.pipeline.Run_(lane) })
			wg.Go(func() { s.refundLate(lane, n) })
		}
	}
	if old == nil {
		return
	}
	for addr, n := range old.nodes {
		if t.nodes[addr] != n {
			n.recordReplaced(s.opts.OnOutage)
			n.stop()
			_ = n.client.Close()
		}
	}
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
		if s.topologyLog.allow() {
			s.opts.Log.Warn("the topology of the store could not be learnt", "error", err)
		}
		if !errors.Is(err, ErrNotMaster) || old.cluster {
			return
		}
		// The single Redis has become a replica. Its connections are open and
		// would go on answering: nobody owns anything until there is a master.
		t = &topology{nodes: map[string]*node{}}
	}
	t.connect(asking, old)
	s.publish(t)
	s.runLanes(ctx, wg, old)
	if t.slots != old.slots {
		s.assertMasters(asking, t, old)
	}
}

// assertMasters asks those nodes for their role whose connections are kept while the
// topology has changed, and ends the connections to those that are no masters.
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

// Close ends all connections. Run must have ended.
func (s *Store) Close() error {
	for _, n := range s.top.Load().nodes {
		n.pipeline.disconnect(errDown)
		if err := n.client.Close(); err != nil {
			return fmt.Errorf("close store: %w", err)
		}
	}
	return nil
}

// recordFailure counts a call that was left undecided, by the node unless that is nil, and asks for the topology
// where that may help.
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

// redirected counts a call that goes on to where a redirect leads.
func (s *Store) redirected(why error) {
	if k := kindOf(why); k.needsReload() || k == KindTryAgain {
		s.counts.redirects[k].Add(1)
		s.requestReload()
	}
}

// requestReload makes Run ask for the topology.
func (s *Store) requestReload() {
	select {
	case s.reload <- struct{}{}:
	default:
	}
}

// Stats returns what was counted so far.
func (s *Store) Stats() Stats {
	st := Stats{
		ScriptLoads: s.counts.scriptLoads.Load(),
		RefundsLost: s.counts.refundsLost.Load(),
		Reloads:     s.counts.reloads.Load(),
		Resets:      s.counts.resets.Load(),
		RoleErrors:  s.counts.roleErrors.Load(),
	}
	for i := range st.Trouble {
		st.Trouble[i] = s.counts.failures[i].Load()
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

// Saturated reports whether the lane to the node of an item's bucket is so full
// that checks wait for several flights.
func (s *Store) Saturated(it *limit.Item) bool {
	n := s.top.Load().nodeOf(it)
	return n != nil && n.pipeline.saturated.Load()
}

// IsCluster reports whether the store is a Redis Cluster.
func (s *Store) IsCluster() bool { return s.top.Load().cluster }

// Ping asks every master whether it is there, and tells why the topology could not be
// learnt the last time, if it could not.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.topErr.Load(); err != nil {
		return *err
	}
	nodes := s.top.Load().nodes
	if len(nodes) == 0 {
		return fmt.Errorf("ping store: %w", errNoMaster)
	}
	for addr, n := range nodes {
		if err := n.client.Ping(ctx).Err(); err != nil {
			return fmt.Errorf("ping %s: %w", addr, err)
		}
	}
	return nil
}
