package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// beats fails unless each heartbeat counts want.
func beats(tb testing.TB, want int, all ...*Heartbeat) {
	tb.Helper()
	for i, h := range all {
		if n, err := h.Beat(tb.Context()); n != want || err != nil {
			tb.Errorf("heartbeat %d counts %d, %v, want %d", i, n, err, want)
		}
	}
}

// TestHeartbeats checks that proxies count each other, through stores of their own. A proxy
// that leaves is gone at once, a proxy that dies when its entry has expired.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	for name, addr := range map[string]string{"single": redistest.Start(t).Addr, "cluster": c.Nodes[0].Addr} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all []*Heartbeat
			for i := range 3 {
				all = append(all, open(t, addr).NewHeartbeat())
				beats(t, i+1, all[i])
			}
			beats(t, 3, all...)
			if err := all[2].Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
			beats(t, 2, all[:2]...)
			beats(t, 3, all[2], all[0], all[1])
			died := time.Now() // the third one stops beating
			redistest.Eventually(t, 3*instanceTTL, "the dead one is gone", func() bool {
				all[1].mustCount(t)
				return all[0].mustCount(t) == 2
			})
			if lived := time.Since(died); lived < instanceTTL-time.Second {
				t.Errorf("the dead one counted for %s only", lived)
			}
			beats(t, 3, all[2])
		})
	}
	redistest.AssertAllKeysExpire(t, c.Nodes...)
}

func (h *Heartbeat) mustCount(tb testing.TB) int {
	tb.Helper()
	n, err := h.Beat(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// TestHeartbeatKeyExpires checks that the key always has an expiry, and expires with its
// last entry.
func TestHeartbeatKeyExpires(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t)
	s, c := open(t, node.Addr), client(t, node.Addr)
	h := s.NewHeartbeat()
	for range 3 {
		beats(t, 1, h)
		redistest.AssertAllKeysExpire(t, node)
		if ttl := c.PTTL(t.Context(), instancesKey).Val(); ttl <= 0 || ttl > instanceTTL {
			t.Errorf("the key lives for %s", ttl)
		}
	}
	redistest.Eventually(t, 3*instanceTTL, "the key is gone", func() bool { return c.Exists(t.Context(), instancesKey).Val() == 0 })
}

// TestHeartbeatWithoutTheRightToArm checks that a user without the right to set an expiry
// leaves no key behind.
func TestHeartbeatWithoutTheRightToArm(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t)
	h := open(t, node.Addr).NewHeartbeat()
	admin := redistest.Restrict(t, node, strings.Fields(strings.Replace(Rights, "+pexpireat", "", 1))...)
	if _, err := h.Beat(t.Context()); kindOf(err) != KindAuth {
		t.Errorf("a beat gives %v", err)
	}
	if n := admin.Exists(t.Context(), instancesKey).Val(); n != 0 {
		t.Errorf("the key is left")
	}
}

// TestHeartbeatAfterAnOutage checks that proxies do not count themselves as the only ones
// when they return one after the other to a store that lost all entries or was unavailable.
func TestHeartbeatAfterAnOutage(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *redistest.Node, *Heartbeat){
		"emptied": func(t *testing.T, n *redistest.Node, _ *Heartbeat) { redistest.FlushAll(t, n) },
		"restarted": func(t *testing.T, n *redistest.Node, h *Heartbeat) {
			n.Kill()
			if _, err := h.Beat(t.Context()); err == nil {
				t.Error("a dead store answered")
			}
			n.Restart()
			redistest.Eventually(t, 10*time.Second, "the store answers", func() bool { return h.store.Ping(t.Context()) == nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := redistest.Start(t)
			var all []*Heartbeat
			for range 3 {
				all = append(all, open(t, node.Addr).NewHeartbeat())
			}
			for range 2 {
				for _, h := range all {
					h.mustCount(t)
				}
			}
			beats(t, 3, all[0])
			lose(t, node, all[0])
			beats(t, 3, all[0]) // the only one to return
			back := time.Now()
			redistest.Eventually(t, 3*instanceTTL, "a smaller count is believed", func() bool { return all[0].mustCount(t) == 1 })
			if after := time.Since(back); after < instanceTTL-time.Second {
				t.Errorf("the others were given up after %s", after)
			}
		})
	}
}

// TestHeartbeatOfAnOutcast checks that a removed entry comes back with the next beat.
func TestHeartbeatOfAnOutcast(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t)
	s, c := open(t, node.Addr), client(t, node.Addr)
	a, b := s.NewHeartbeat(), s.NewHeartbeat()
	beats(t, 1, a)
	beats(t, 2, b, a)
	if n := c.HDel(t.Context(), instancesKey, b.id).Val(); n != 1 {
		t.Fatalf("%d entries taken out", n)
	}
	beats(t, 1, a)
	beats(t, 2, b, a)
}

// TestHeartbeatJunk checks that invalid entries are removed, a hash full of them is
// deleted, and a value that is not a hash is left unchanged and reported.
func TestHeartbeatJunk(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t)
	s, c := open(t, node.Addr), client(t, node.Addr)
	h := s.NewHeartbeat()
	c.HSet(t.Context(), instancesKey, "word", "x", "empty", "", "past", "1", "never", "9e99", "nan", "nan", "swept", "9e99")
	beats(t, 1, h)
	if left := c.HKeys(t.Context(), instancesKey).Val(); len(left) != 2 {
		t.Errorf("left are %q, want the entry and when was looked", left)
	}
	far := fmt.Sprint(storeTime(t, c).Add(instanceTTL).UnixMilli())
	pipe := c.Pipeline()
	for i := range maxInstances + 1 {
		pipe.HSet(t.Context(), instancesKey, fmt.Sprint("junk", i), far)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	beats(t, 1, h)
	if n := c.HLen(t.Context(), instancesKey).Val(); n != 2 {
		t.Errorf("%d fields are left", n)
	}
	redistest.AssertAllKeysExpire(t, node)
	c.Set(t.Context(), instancesKey, "somebody else's", time.Minute)
	if _, err := h.Beat(t.Context()); kindOf(err) != KindWrongType {
		t.Errorf("a beat gives %v", err)
	}
	if got := c.Get(t.Context(), instancesKey).Val(); got != "somebody else's" {
		t.Errorf("it is now %q", got)
	}
}

// TestHeartbeatFollowsItsKey kills the master of the key, and checks that its replica takes
// the beats.
func TestHeartbeatFollowsItsKey(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 1, "--cluster-node-timeout", "1000")
	h := open(t, c.Addrs()...).NewHeartbeat()
	beats(t, 1, h)
	c.NodeForSlot(t, int(limit.HashSlot([]byte(instancesKey)))).Kill()
	redistest.Eventually(t, 30*time.Second, "a replica takes the beats", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		n, err := h.Beat(ctx)
		return err == nil && n == 1
	})
}

// TestAnswersNobody checks that a store without a master does not answer; for a store with
// an open breaker see TestBreakerAndPeek.
func TestAnswersNobody(t *testing.T) {
	var s Store
	s.top.Store(&topology{})
	if s.Answers() {
		t.Error("a store without a master answers")
	}
}

// TestCountIsRemembered checks that a proxy that starts while the master of the heartbeats
// is down reads the number of proxies from the others.
func TestCountIsRemembered(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0, "--cluster-require-full-coverage", "no", "--cluster-node-timeout", "60000")
	opts := Options{ReloadInterval: 50 * time.Millisecond}
	a, b := openWithOptions(t, opts, c.Addrs()...), openWithOptions(t, opts, c.Addrs()...)
	ha, hb := a.NewHeartbeat(), b.NewHeartbeat()
	beats(t, 1, ha)
	beats(t, 2, hb, ha)
	for _, s := range []*Store{a, b} {
		was := s.Stats().Reloads
		redistest.Eventually(t, 10*time.Second, "the marks to be prolonged", func() bool { return s.Stats().Reloads >= was+3 })
	}
	c.NodeForSlot(t, int(limit.HashSlot([]byte(instancesKey)))).Kill()
	fresh := openWithOptions(t, opts, c.Addrs()...).NewHeartbeat()
	if n, err := fresh.Beat(t.Context()); err == nil || n != 2 {
		t.Errorf("a proxy that starts counts %d: %v, want the 2 there were", n, err)
	}
}
