package cluster

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// replacedAge is the age of connections in the tests of this file. Stalls are several times as
// long, so that there are replacements before each, during it and after it.
const replacedAge = 30 * time.Millisecond

// takers take single units of one bucket that gets none back, over and over.
type takers struct {
	store *Store
	set   *limit.Set
	stop  atomic.Bool
	wg    sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	taken int64      // units that callers know of
	open  []span     // the calls that were not decided
}

// span is the time of a call.
type span struct{ from, to time.Time }

const (
	takersUnits = 1_000_000
	takersCount = 8
)

func startTakers(t *testing.T, s *Store) *takers {
	t.Helper()
	k := &takers{store: s, set: compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000000/366d", Algorithm: "fixed_window"})}
	for range takersCount {
		k.wg.Go(func() {
			for !k.stop.Load() {
				if k.take() < 0 {
					time.Sleep(time.Millisecond) // a node that is down refuses calls at once
				}
			}
		})
	}
	return k
}

// take takes a unit, and returns the units that are left, or -1 if that is not decided.
func (k *takers) take() (left int64) {
	var b limit.Buffer
	from := time.Now()
	k.set.Resolve(&limit.Request{Tenant: "t", Cost: 1}, testAddrs, from.UnixMicro(), &b)
	k.store.Take(limit.DecisionTime{Now: from.UnixMicro(), Start: from, Timeout: 10 * time.Second}, b.Items, b.Calls)
	k.mu.Lock()
	defer k.mu.Unlock()
	if b.Items[0].Source != limit.SourceStore {
		k.open = append(k.open, span{from, time.Now()})
		return -1
	}
	k.taken++
	return b.Items[0].Remaining
}

// awaitMore waits until n further units are taken.
func (k *takers) awaitMore(t *testing.T, n int64) {
	t.Helper()
	known := func() int64 {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.taken
	}
	from := known()
	redistest.Eventually(t, 20*time.Second, "decisions", func() bool { return known() >= from+n })
}

// end ends the calls, and fails the test unless the bucket lacks the units that callers know of,
// and at most one more for each call that was not decided.
func (k *takers) end(t *testing.T) {
	t.Helper()
	k.stop.Store(true)
	k.wg.Wait()
	left := k.take()
	if lacks := takersUnits - left; left < 0 || lacks < k.taken || lacks > k.taken+int64(len(k.open)) {
		t.Errorf("%d units are taken, of which callers know %d; %d calls are undecided", lacks, k.taken, len(k.open))
	}
}

// allDecided fails the test if a call was not decided.
func (k *takers) allDecided(t *testing.T) {
	t.Helper()
	if n := k.store.Stats().Undecided; len(k.open) > 0 || n != [numKinds]int64{} {
		t.Errorf("%d calls are undecided: %v", len(k.open), n)
	}
}

// replacingStores are stores on a node each, over connections of both kinds.
func replacingStores(t *testing.T, test func(t *testing.T, node *redistest.Node, opts Options, addr string)) {
	a := redistest.NewAuthority(t)
	t.Run("plain", func(t *testing.T) {
		node := redistest.Start(t)
		test(t, node, Options{MaxConnAge: replacedAge}, node.Addr)
	})
	t.Run("TLS", func(t *testing.T) {
		node := redistest.Start(t, a.Args()...)
		test(t, node, Options{MaxConnAge: replacedAge, TLS: tlsOf(t, a)}, node.TLSAddr())
	})
}

// TestReplacedWhileScriptsAreFlushed: no call is lost or made twice while connections are
// replaced and the script is flushed, again and again: a batch whose script was missing is sent
// once more, perhaps over the next connection.
func TestReplacedWhileScriptsAreFlushed(t *testing.T) {
	replacingStores(t, func(t *testing.T, node *redistest.Node, opts Options, addr string) {
		s := openWithOptions(t, opts, addr)
		admin, before := client(t, node.Addr), received(t, node)
		k := startTakers(t, s)
		for i := 0; i < 50 || received(t, node)-before < 20; i++ {
			if err := admin.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			k.awaitMore(t, 20)
		}
		k.end(t)
		k.allDecided(t)
		if s.Stats().ScriptLoads < 10 {
			t.Errorf("the script was loaded again %d times", s.Stats().ScriptLoads)
		}
	})
}

// TestReplacedWhileNodeIsStopped: calls wait for a node that stands still while its connections
// are due to be replaced, and none is lost or made twice.
func TestReplacedWhileNodeIsStopped(t *testing.T) {
	replacingStores(t, func(t *testing.T, node *redistest.Node, opts Options, addr string) {
		s := openWithOptions(t, opts, addr)
		before := received(t, node)
		k := startTakers(t, s)
		for range 5 {
			k.awaitMore(t, 100)
			node.Stop()
			time.Sleep(5 * replacedAge)
			node.Cont()
		}
		k.awaitMore(t, 100)
		redistest.Eventually(t, 20*time.Second, "replacements", func() bool { return received(t, node)-before > 20 })
		k.end(t)
		k.allDecided(t)
	})
}

// TestReplacedAfterStall: a node that stands still for longer than calls and connections wait
// leaves those calls undecided that it overlaps, and no others. Its connections are replaced
// afterwards as before.
func TestReplacedAfterStall(t *testing.T) {
	replacingStores(t, func(t *testing.T, node *redistest.Node, opts Options, addr string) {
		const wait = 500 * time.Millisecond // longer than a busy machine lets a node wait
		opts.Addrs, opts.IOTimeout, opts.DialTimeout, opts.Cooldown, opts.ToLoop = []string{addr}, wait, wait, wait/5, toLoop
		s, err := Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		running(t, s)
		k := startTakers(t, s)
		k.awaitMore(t, 100)
		stopped := time.Now()
		node.Stop()
		time.Sleep(2 * wait)
		node.Cont()
		k.awaitMore(t, 100)
		over := time.Now()
		before := received(t, node)
		redistest.Eventually(t, 20*time.Second, "replacements", func() bool { return received(t, node)-before > 10 })
		k.end(t)
		for _, c := range k.open {
			if c.to.Before(stopped) || c.from.After(over) {
				t.Errorf("a call is undecided %s after the stall began, which was over after %s", c.from.Sub(stopped), over.Sub(stopped))
			}
		}
		if len(k.open) == 0 {
			t.Error("the stall has no effect")
		}
	})
}
