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
	opts    Options
	scripts scripts
	top     atomic.Pointer[topology]
	reload  chan struct{} // one slot: a reload that is wanted already covers the next wish
	late    chan []limit.Item
	counts  counters

	secret     atomic.Pointer[[]byte] // agreed on, see AgreeSecret
	secretKept atomic.Int64           // when it was last prolonged, in seconds
}

// Open connects to the store and finds out what it is. It fails when no
// address answers, and when the only Redis that can be reached is a replica.
// Run must be called to keep the topology fresh, and Close in the end.
func Open(ctx context.Context, opts Options) (*Store, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	s := &Store{opts: opts, scripts: newScripts(writeFormat), reload: make(chan struct{}, 1), late: make(chan []limit.Item, lateRefunds)}
	t, err := s.opts.discover(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s.top.Store(t)
	s.warm(ctx, nil)
	return s, nil
}

// Run reloads the topology when trouble asks for it, and now and then, and gives
// back late what could not be given back in time, until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.refundLate(ctx) })
	tick := time.NewTicker(s.opts.ReloadInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-s.reload:
		}
		s.reloadTopology(ctx)
		s.keepSecret(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reloadPause):
		}
	}
}

func (s *Store) reloadTopology(ctx context.Context) {
	s.counts.reloads.Add(1)
	ctx, cancel := context.WithTimeout(ctx, s.opts.ReloadInterval)
	defer cancel()
	old := s.top.Load()
	t, err := s.opts.discover(ctx, old)
	if err != nil {
		s.opts.Log.Warn("the topology of the store could not be learnt", "error", err)
		if !errors.Is(err, ErrNotMaster) || old.cluster {
			return
		}
		// The single Redis has become a replica. Its connections are open and
		// would go on answering: nobody owns anything until there is a master.
		t = &topology{nodes: map[string]*node{}}
	}
	s.top.Store(t)
	s.warm(ctx, old)
	t.closeUnused(old)
}

// warm warms the nodes that old does not have, all at the same time.
func (s *Store) warm(ctx context.Context, old *topology) {
	var wg sync.WaitGroup
	for addr, n := range s.top.Load().nodes {
		if old == nil || old.nodes[addr] != n {
			wg.Go(func() { n.warm(ctx, s.scripts) })
		}
	}
	wg.Wait()
}

// Close ends all connections.
func (s *Store) Close() error {
	for _, n := range s.top.Load().nodes {
		if err := n.client.Close(); err != nil {
			return fmt.Errorf("close store: %w", err)
		}
	}
	return nil
}

// Take decides each call all or nothing, see limiter.Store.
func (s *Store) Take(at limit.Moment, items []limit.Item, calls []limit.Call) {
	s.decide(at, "take", items, calls)
}

// Peek gives the verdicts that Take would give, and takes nothing.
func (s *Store) Peek(at limit.Moment, items []limit.Item, calls []limit.Call) {
	s.decide(at, "peek", items, calls)
}

func (s *Store) decide(at limit.Moment, verb string, items []limit.Item, calls []limit.Call) {
	if len(calls) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), at.Deadline())
	defer cancel()
	s.onOwners(items, calls, func(n *node, calls []limit.Call) {
		b := newBatch(s, n, s.scripts.take)
		b.charges = verb == "take"
		for _, c := range calls {
			group := items[c.First:c.Last]
			keys, args := takeArgs(verb, group)
			b.add(group, keys, args)
		}
		b.run(ctx, func(group []limit.Item, reply any) error { return s.decideCall(ctx, n, verb, group, reply) })
	})
}

// decideCall reads the reply to a call. When the store's clock was outside the
// calendar boundaries, nothing was charged: it sends once more, with those
// around that clock.
func (s *Store) decideCall(ctx context.Context, n *node, verb string, items []limit.Item, reply any) error {
	clock, err := decodeTake(reply, items)
	if err != nil || clock == 0 {
		return err
	}
	for i := range items {
		items[i].Bounds = items[i].Limit.Bounds(clock)
	}
	keys, args := takeArgs(verb, items)
	again, err := n.client.EvalSha(ctx, s.scripts.take.sha, keys, args...).Result()
	if err != nil {
		return err
	}
	if clock, err = decodeTake(again, items); err == nil && clock != 0 {
		err = fmt.Errorf("%w: the clock jumps", errReply)
	}
	return err
}

// trouble counts a call that was left undecided, and asks for the topology
// where that may help.
func (s *Store) trouble(err error, items []limit.Item) {
	k := kindOf(err)
	s.counts.trouble[k].Add(1)
	if k == KindWrongType || k == KindFormat {
		keys, _ := keysOf(items)
		s.opts.Log.Error("one of these keys holds something that is not a bucket", "keys", keys, "error", err)
	}
	if k.callsForReload() {
		s.wantReload()
	}
}

// wantReload makes Run ask for the topology.
func (s *Store) wantReload() {
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
	}
	for i := range st.Trouble {
		st.Trouble[i] = s.counts.trouble[i].Load()
	}
	return st
}

// Locate returns the address of the node that holds an item's bucket.
func (s *Store) Locate(it *limit.Item) string {
	if n := s.top.Load().owner(it.Slot()); n != nil {
		return n.addr
	}
	return ""
}

// IsCluster reports whether the store is a Redis Cluster.
func (s *Store) IsCluster() bool { return s.top.Load().cluster }

// Ping asks every master whether it is there.
func (s *Store) Ping(ctx context.Context) error {
	for addr, n := range s.top.Load().nodes {
		if err := n.client.Ping(ctx).Err(); err != nil {
			return fmt.Errorf("ping %s: %w", addr, err)
		}
	}
	return nil
}
