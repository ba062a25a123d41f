package cluster

import (
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

// late returns options for stores that are opened while they are down: the intervals of
// agreeing on a secret are short enough for a test.
func late(adopt func([]byte), proposal string, reload time.Duration) Options {
	return Options{
		Secret: []byte(strings.Repeat(proposal, 32)), Adopt: adopt,
		IOTimeout: 100 * time.Millisecond, DialTimeout: time.Second, ReloadInterval: reload,
	}
}

// adopted records the secrets that a store adopted, and whether it could decide anything
// before.
type adopted struct {
	mu      sync.Mutex // guards all
	secrets []string
	decides bool
	store   *Store
}

func (a *adopted) adopt(secret []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.secrets = append(a.secrets, string(secret[:1]))
	a.decides = a.decides || a.store != nil && !a.store.isEmpty()
}

// openLate opens a store that is down.
func openLate(tb testing.TB, addr, proposal string, reload time.Duration) *adopted {
	tb.Helper()
	a := &adopted{}
	s, err := openWithout(tb, late(a.adopt, proposal, reload), addr)
	if err != nil {
		tb.Fatal(err)
	}
	a.store = s
	running(tb, s)
	return a
}

// expect waits until the store has been reached, and compares the adopted secret.
func (a *adopted) expect(tb testing.TB, want string) {
	tb.Helper()
	select {
	case <-a.store.Reached():
	case <-time.After(20 * time.Second):
		tb.Fatalf("the store is not reached: %v", a.store.Ping(tb.Context()))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if got := strings.Join(a.secrets, " "); got != want || a.decides {
		tb.Errorf("adopted %q, want %q once; it could decide before: %v", got, want, a.decides)
	}
}

// TestSecretAgreedLate checks that a proxy which starts without its store decides nothing
// on it before it hashes like the others. If the store has a secret, the proxy adopts it at
// once. If the store came back empty, the secret is that of the proxies that ran before,
// however late they reconnect.
func TestSecretAgreedLate(t *testing.T) {
	t.Run("kept", func(t *testing.T) {
		node := redistest.Start(t)
		first := openWithOptions(t, Options{}, node.Addr)
		if _, err := agreeSecret(t, first, []byte(strings.Repeat("a", 32))); err != nil {
			t.Fatal(err)
		}
		node.Stop()
		second := openLate(t, node.Addr, "b", time.Second)
		node.Cont()
		second.expect(t, "a")
	})
	t.Run("lost", func(t *testing.T) {
		node := redistest.Start(t)
		opts := late(nil, "a", time.Second)
		first, err := openWithout(t, opts, node.Addr)
		if err != nil {
			t.Fatal(err)
		}
		node.Kill()
		second := openLate(t, node.Addr, "b", 8*time.Second) // waits for ten
		node.Restart()
		// At this point the second proxy sees the empty store before the first one does.
		redistest.Eventually(t, 10*time.Second, "a look at the empty store", func() bool {
			return errors.Is(second.store.Ping(t.Context()), errNoSecret)
		})
		running(t, first)
		second.expect(t, "a")
	})
	t.Run("replaced", func(t *testing.T) {
		node := redistest.Start(t)
		first := openLate(t, node.Addr, "a", time.Second)
		<-first.store.Reached()
		other := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("b", 32)))
		if err := client(t, node.Addr).Set(t.Context(), secretKey, other, time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, 10*time.Second, "the secret of the second proxy", func() bool {
			first.mu.Lock()
			defer first.mu.Unlock()
			return len(first.secrets) == 2 && first.secrets[1] == "b"
		})
	})
	for setting, refusing := range map[string][3]string{"maxmemory": {"1", "0", "OOM "}, "min-replicas-to-write": {"1", "0", "NOREPLICAS "}} {
		t.Run(setting, func(t *testing.T) {
			node := redistest.Start(t, "--maxmemory-policy", "noeviction")
			node.CLI(t, "CONFIG", "SET", setting, refusing[0])
			proxy := openLate(t, node.Addr, "a", time.Second)
			// The reason is the reply of the node, while the proxy waits for others, too.
			waits := time.Now().Add(5 * time.Second)
			redistest.Eventually(t, 20*time.Second, "a wait for others", func() bool {
				if err := proxy.store.Ping(t.Context()); !strings.Contains(err.Error(), refusing[2]) {
					t.Fatal(err)
				}
				return time.Now().After(waits)
			})
			node.CLI(t, "CONFIG", "SET", setting, refusing[1])
			proxy.expect(t, "a")
		})
	}
	t.Run("none", func(t *testing.T) {
		node, addr := downAddr(t)
		second, third := openLate(t, addr, "b", time.Second), openLate(t, addr, "c", time.Second)
		node.Restart()
		<-second.store.Reached()
		<-third.store.Reached()
		second.mu.Lock()
		agreed := second.secrets[0]
		second.mu.Unlock()
		second.expect(t, agreed)
		third.expect(t, agreed)
	})
}

// TestSecretImpossible checks that another value in place of a secret is an error.
func TestSecretImpossible(t *testing.T) {
	node := redistest.Start(t)
	c := client(t, node.Addr)
	for name, put := range map[string]func() error{
		"no secret": func() error { return c.Set(t.Context(), secretKey, "!", time.Minute).Err() },
		"a list":    func() error { return c.LPush(t.Context(), secretKey, "!").Err() },
	} {
		c.Del(t.Context(), secretKey)
		if err := put(); err != nil {
			t.Fatal(err)
		}
		s, err := openWithout(t, Options{Secret: []byte(strings.Repeat("a", 32))}, node.Addr)
		if err == nil || !strings.Contains(err.Error(), "lg:secret holds something else than proxies write: delete it, or set --privacy-ip-secret-file") {
			t.Errorf("%s: opened as %v with %v", name, s, err)
		}
	}
}
