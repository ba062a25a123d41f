package cluster

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
)

// startSentinel starts a Sentinel that watches a master under the name limits, with further lines
// of its configuration, and returns its address.
func startSentinel(t *testing.T, master *redistest.Node, lines ...string) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(master.Addr)
	path := filepath.Join(t.TempDir(), "sentinel.conf") // a Sentinel writes to it
	text := fmt.Sprintf("sentinel monitor limits 127.0.0.1 %s 1\nsentinel down-after-milliseconds limits 500\nsentinel failover-timeout limits 2000\n", port)
	if err := os.WriteFile(path, []byte(text+strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return redistest.StartSentinel(t, path).Addr
}

// TestSentinel: the store is the master that a Sentinel names, and after a failover its
// successor.
func TestSentinel(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	sentinel := startSentinel(t, master)
	s := openWithOptions(t, Options{Sentinel: "limits", ReloadInterval: 200 * time.Millisecond}, "127.0.0.1:1", sentinel)
	storetest.Run(t, s)
	redistest.Eventually(t, 30*time.Second, "the Sentinel to know the replica", func() bool {
		return strings.Contains(client(t, sentinel).Do(t.Context(), "SENTINEL", "REPLICAS", "limits").String(), replica.Addr)
	})
	master.Kill()
	redistest.Eventually(t, 60*time.Second, "decisions by the successor", func() bool {
		items, calls := someCall("t")
		now := time.Now()
		s.Take(limit.DecisionTime{Now: now.UnixMicro(), Start: now, Timeout: time.Second}, items, calls)
		return items[0].Source == limit.SourceStore && s.top.Load().single.addr == replica.Addr
	})
}

// TestSentinelMistakes checks the sentences for a wrong name and a wrong address.
func TestSentinelMistakes(t *testing.T) {
	master := redistest.Start(t)
	for _, row := range []struct{ addr, name, want string }{
		{startSentinel(t, master), "other", `does not know a master named "other"`},
		{master.Addr, "limits", "it is no Sentinel"},
	} {
		if _, err := Open(t.Context(), Options{Addrs: []string{row.addr}, Sentinel: row.name, StartWithout: true}); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("got %v, want %q", err, row.want)
		}
	}
}

// TestSentinelAnswers: an answer that is no address of another node is refused, and a master
// that is down is named, without a login at the Sentinel.
func TestSentinelAnswers(t *testing.T) {
	for _, words := range []string{"$0\r\n\r\n$4\r\n6379\r\n", "$7\r\n0.0.0.0\r\n$4\r\n6379\r\n", "$9\r\n127.0.0.1\r\n$5\r\n99999\r\n", "$9\r\n127.0.0.1\r\n$1\r\nx\r\n"} {
		addr := redistest.Listen(t, func(c net.Conn) {
			for buf := make([]byte, 4096); ; {
				if _, err := c.Read(buf); err != nil {
					return
				}
				_, _ = c.Write([]byte("*2\r\n" + words))
			}
		})
		if _, err := Open(t.Context(), Options{Addrs: []string{addr}, Sentinel: "limits", DialTimeout: time.Second}); err == nil || !strings.Contains(err.Error(), "ask Sentinel") {
			t.Errorf("%q: %v", words, err)
		}
	}
	master := redistest.Start(t, "--requirepass", "secret")
	sentinel := startSentinel(t, master)
	master.Kill()
	p := &password{texts: []string{"secret"}}
	s, err := Open(t.Context(), Options{Addrs: []string{sentinel}, Sentinel: "limits", Credentials: p, StartWithout: true, DialTimeout: time.Second})
	if err != nil {
		t.Fatalf("a store does not start while its master is down: %v", err)
	}
	if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "the master "+master.Addr+": connection refused") || p.refused > 0 {
		t.Errorf("got %v, %d refused logins", err, p.refused)
	}
	_ = s.Close()
}

// TestSentinelCredentials: a Sentinel that requires a login gets that of Redis, and one that does
// not gets none. A store does not start with a Sentinel that refuses it, and reports the reason.
func TestSentinelCredentials(t *testing.T) {
	master := redistest.Start(t, append([]string{"--user", "limitgate", "on", ">secret"}, strings.Fields(Rights)...)...)
	open := redistest.Start(t)
	for name, row := range map[string]struct {
		master *redistest.Node
		user   string // none means no credentials
		lines  []string
		want   string
	}{
		"no login":       {master, "limitgate", nil, ""},
		"the same":       {master, "limitgate", []string{"requirepass other", "user limitgate on >secret +sentinel|get-master-addr-by-name"}, ""},
		"another":        {master, "limitgate", []string{"requirepass other", "user limitgate on >other +@all"}, "the Sentinel requires a login, and refuses that of Redis"},
		"unknown user":   {master, "limitgate", []string{"requirepass secret"}, "the Sentinel requires a login, and refuses that of Redis"},
		"no rights":      {master, "limitgate", []string{"requirepass other", "user limitgate on >secret +@all -sentinel"}, "add +sentinel|get-master-addr-by-name to it there"},
		"no credentials": {open, "", []string{"requirepass other"}, "the Sentinel requires a login, and gets that of Redis: set --redis-password-file"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := Options{Sentinel: "limits", StartWithout: true, Addrs: []string{startSentinel(t, row.master, row.lines...)}}
			p := &password{user: row.user, texts: []string{"secret"}}
			if row.user != "" {
				opts.Credentials = p
			}
			if row.want == "" {
				decideOnce(t, openWithOptions(t, opts, opts.Addrs...))
				if p.refused > 0 {
					t.Errorf("%d logins are refused", p.refused)
				}
				return
			}
			s, err := Open(t.Context(), opts)
			if err == nil {
				_ = s.Close()
				t.Fatal("it opens")
			}
			if !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

// TestSentinelRefuses: the error about a Sentinel that is down names that, and no Redis.
func TestSentinelRefuses(t *testing.T) {
	_, err := Open(t.Context(), Options{Addrs: []string{"127.0.0.1:1"}, Sentinel: "m", Secret: []byte(strings.Repeat("s", 32))})
	if want := "127.0.0.1:1: connection refused: start the Sentinel, or correct the address"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
