package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/limit"
)

// onOwners hands each master the calls whose slots it owns, all masters at the
// same time, and returns when all have answered. Calls keep their order.
func (s *Store) onOwners(items []limit.Item, calls []limit.Call, do func(*node, []limit.Call)) {
	t := s.top.Load()
	var owners []*node
	byOwner := map[*node][]limit.Call{}
	for _, c := range calls {
		n := t.owner(items[c.First].Slot())
		if n == nil {
			s.counts.trouble[KindNoNode].Add(1)
			s.wantReload()
			continue
		}
		if byOwner[n] == nil {
			owners = append(owners, n)
		}
		byOwner[n] = append(byOwner[n], c)
	}
	if len(owners) == 1 {
		do(owners[0], byOwner[owners[0]])
		return
	}
	var wg sync.WaitGroup
	for _, n := range owners {
		wg.Go(func() { do(n, byOwner[n]) })
	}
	wg.Wait()
}

// batch is a pipeline of calls of one script to one master.
type batch struct {
	store  *Store
	node   *node
	script script
	calls  []pendingCall
	// charges says that the calls take units: those of a call whose reply did
	// not come may stay taken.
	charges bool
	// failure is why the last call that failed did.
	failure error
}

type pendingCall struct {
	items []limit.Item
	keys  []string
	args  []any
}

func newBatch(s *Store, n *node, sc script) *batch { return &batch{store: s, node: n, script: sc} }

func (b *batch) add(items []limit.Item, keys []string, args []any) {
	b.calls = append(b.calls, pendingCall{items, keys, args})
}

// run sends the calls in one round trip and hands each reply to read. Calls
// that failed stay undecided and are counted. Calls that found the script
// missing did not run: the script is loaded and they are sent once more.
func (b *batch) run(ctx context.Context, read func(items []limit.Item, reply any) error) {
	defer b.report()
	weight := min(maxInFlight, int64(len(b.calls)))
	if !b.node.enter(ctx, weight) {
		b.fail(b.calls, errOverload)
		return
	}
	defer b.node.inFlight.Release(weight)
	missing := b.send(ctx, b.calls, read, true)
	if len(missing) == 0 {
		return
	}
	b.store.counts.scriptLoads.Add(1)
	if err := b.node.client.ScriptLoad(ctx, b.script.text).Err(); err != nil {
		b.fail(missing, err)
		return
	}
	b.send(ctx, missing, read, false)
}

// report logs when a node falls sick and when it is well again, seldom enough
// that a node which is both in turn does not flood the log.
func (b *batch) report() {
	n, log := b.node, b.store.opts.Log
	switch {
	case b.failure != nil && !n.sick.Load():
		last := n.reported.Load()
		if now := time.Now().Unix(); now-last >= reportPause && n.reported.CompareAndSwap(last, now) {
			n.sick.Store(true)
			log.Warn("the store does not decide everything, the backstop does the rest", "node", n.addr, "kind", kindOf(b.failure).String(), "error", b.failure)
		}
	case b.failure == nil && n.sick.Load() && n.sick.CompareAndSwap(true, false):
		log.Info("the store decides again", "node", n.addr)
	}
}

// reportPause is the least time between two reports of a sick node, in seconds.
const reportPause = 5

// errOverload is why a call was never sent: its turn did not come in time.
var errOverload = errors.New("send call: too many are in flight")

func (b *batch) fail(calls []pendingCall, err error) {
	for _, c := range calls {
		b.store.trouble(err, c.items)
		b.failure = err
		if b.charges && kindOf(err) == KindTimeout {
			b.store.counts.refundsLost.Add(int64(len(c.items)))
		}
	}
}

// send sends calls in one pipeline and returns those that found no script, if
// those are forgiven.
func (b *batch) send(ctx context.Context, calls []pendingCall, read func([]limit.Item, any) error, forgive bool) (missing []pendingCall) {
	pipe := b.node.client.Pipeline()
	replies := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		replies[i] = pipe.EvalSha(ctx, b.script.sha, c.keys, c.args...)
	}
	_, _ = pipe.Exec(ctx) // every reply carries its own error
	for i, c := range calls {
		reply, err := replies[i].Result()
		if err == nil {
			err = read(c.items, reply)
		} else if forgive && redis.HasErrorPrefix(err, "NOSCRIPT") {
			missing = append(missing, c)
			continue
		}
		if err != nil {
			b.fail(calls[i:i+1], err)
		}
	}
	return missing
}
