package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/internal/tlsfiles"
	"github.com/limitgate/limitgate/limit"
)

// password is the password of a user of a test.
type password struct {
	user string

	mu      sync.Mutex // guards the fields below
	texts   []string   // the present one, then those to try after a refusal
	refused int
}

func (p *password) Credentials(context.Context) (user, text string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.user, p.texts[0], nil
}

func (p *password) Refused(_ context.Context, text string) (retry bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused++; len(p.texts) > 1 && p.texts[0] == text {
		p.texts = p.texts[1:]
		return true
	}
	return false
}

// tlsOf returns the configurations of a client that trusts an authority.
func tlsOf(tb testing.TB, a *redistest.Authority) func(string) (*tls.Config, error) {
	tb.Helper()
	c, err := tlsfiles.NewClient(tlsfiles.ClientOptions{CA: a.CA})
	if err != nil {
		tb.Fatal(err)
	}
	return c.Config
}

// TestTLSAndUser runs the contract of stores over TLS as a user with the least rights.
func TestTLSAndUser(t *testing.T) {
	a := redistest.NewAuthority(t)
	args := append(append(a.Args(), "--user", "limitgate", "on", ">secret"), strings.Fields(Rights)...)
	for name, addr := range map[string]string{
		"single":  redistest.Start(t, args...).TLSAddr(),
		"cluster": redistest.StartCluster(t, 3, 0, args...).Nodes[1].TLSAddr(),
	} {
		t.Run(name, func(t *testing.T) {
			s := openWithOptions(t, Options{TLS: tlsOf(t, a), Credentials: &password{user: "limitgate", texts: []string{"secret"}}}, addr)
			storetest.Run(t, s)
			if n := len(s.top.Load().nodes); name == "cluster" && n != 3 {
				t.Errorf("%d nodes", n)
			}
		})
	}
}

// TestEveryByteIsEncrypted: each connection of a store begins with a TLS handshake, and no
// command or key is in its bytes.
func TestEveryByteIsEncrypted(t *testing.T) {
	a := redistest.NewAuthority(t)
	node := redistest.Start(t, a.Args()...)
	var mu sync.Mutex // guards the variables below
	conns, all := 0, []byte(nil)
	addr := redistest.Listen(t, func(client net.Conn) {
		server, err := net.Dial("tcp", node.TLSAddr())
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = server.Close() }()
		mu.Lock()
		conns++
		mu.Unlock()
		go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
		first := true
		for buf := make([]byte, 64<<10); ; {
			n, err := client.Read(buf)
			if err != nil {
				return
			}
			mu.Lock()
			if all = append(all, buf[:n]...); first && buf[0] != 0x16 { // a TLS handshake record
				t.Errorf("a connection begins with %q", buf[:min(n, 40)])
			}
			mu.Unlock()
			first = false
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	s := openWithOptions(t, Options{TLS: tlsOf(t, a), Secret: bytes.Repeat([]byte("s"), 32)}, addr)
	storetest.Run(t, s)
	if _, err := s.Reset(t.Context(), "t", ""); err != nil {
		t.Error(err)
	}
	if _, err := s.NewHeartbeat().Beat(t.Context()); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if conns < 2 {
		t.Errorf("%d connections", conns)
	}
	for _, word := range []string{"EVALSHA", "evalsha", "SCRIPT", "lg:secret", "lg:instances", "heartbeat"} {
		if bytes.Contains(all, []byte(word)) {
			t.Errorf("%s is readable", word)
		}
	}
}

// TestTLSFailures checks the sentences for what is wrong with TLS and passwords, and that a
// store does not start with it.
func TestTLSFailures(t *testing.T) {
	a, other := redistest.NewAuthority(t), redistest.NewAuthority(t)
	node := redistest.Start(t, append(a.Args(), "--requirepass", "secret")...)
	demanding := redistest.Start(t, append(a.Args(), "--tls-auth-clients", "yes")...)
	cert, key := a.Issue("expired.test", time.Now().Add(-time.Hour))
	expired := redistest.Start(t, append(a.Args(), "--tls-cert-file", cert, "--tls-key-file", key)...)
	trusting := tlsOf(t, a)
	for name, row := range map[string]struct {
		opts Options
		addr string
		want string
	}{
		"TLS without":        {Options{}, node.TLSAddr(), "set --redis-tls"},
		"no TLS":             {Options{TLS: trusting}, node.Addr, "it does not speak TLS"},
		"another authority":  {Options{TLS: tlsOf(t, other)}, node.TLSAddr(), "name the authority by --redis-tls-ca"},
		"another name":       {Options{TLS: trusting}, strings.Replace(node.TLSAddr(), "127.0.0.1", "127.0.0.2", 1), "connection refused"},
		"expired":            {Options{TLS: trusting}, expired.TLSAddr(), "is not valid at this time"},
		"client certificate": {Options{TLS: trusting}, demanding.TLSAddr(), "set --redis-tls-cert and --redis-tls-key"},
		"no password":        {Options{TLS: trusting}, node.TLSAddr(), "set --redis-password-file"},
		"wrong password":     {Options{TLS: trusting, Credentials: &password{texts: []string{"hunter2"}}}, node.TLSAddr(), "WRONGPASS"},
		"unknown user":       {Options{TLS: trusting, Credentials: &password{user: "u", texts: []string{"hunter2"}}}, node.TLSAddr(), "WRONGPASS"},
	} {
		t.Run(name, func(t *testing.T) {
			row.opts.Addrs, row.opts.DialTimeout, row.opts.StartWithout = []string{row.addr}, 5*time.Second, name != "another name"
			s, err := Open(t.Context(), row.opts)
			if err == nil {
				_ = s.Close()
				t.Fatal("it opens")
			}
			if !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

// TestSecondPassword: a password that is refused is replaced by the next one, on the same
// connection, and counts once.
func TestSecondPassword(t *testing.T) {
	node := redistest.Start(t, "--requirepass", "new")
	p := &password{texts: []string{"old", "new"}}
	s := openWithOptions(t, Options{Credentials: p}, node.Addr)
	storetest.Run(t, s)
	if p.refused != 1 {
		t.Errorf("%d passwords were refused", p.refused)
	}
	if _, err := Open(t.Context(), Options{Addrs: []string{redistest.Start(t).Addr}, Credentials: p}); err == nil || !strings.Contains(err.Error(), "wants no password") {
		t.Errorf("a node without a password: %v", err)
	}
}

// TestDatabase: buckets are in the database of the options, and a cluster has none but 0.
func TestDatabase(t *testing.T) {
	node := redistest.Start(t)
	take(t, openWithOptions(t, Options{DB: 3}, node.Addr), compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1/h"}), limit.Request{Tenant: "t", Cost: 1})
	if text := node.CLI(t, "INFO", "keyspace"); strings.Contains(text, "db0:") || !strings.Contains(text, "db3:") {
		t.Errorf("the keys are in %s", text)
	}
	if _, err := Open(t.Context(), Options{DB: 3, Addrs: redistest.SharedCluster(t).Addrs()}); err == nil || !strings.Contains(err.Error(), "database 0 only") {
		t.Errorf("a cluster: %v", err)
	}
}

// received returns how many connections a node has accepted.
func received(t *testing.T, n *redistest.Node) int {
	t.Helper()
	for line := range strings.Lines(n.CLI(t, "INFO", "stats")) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "total_connections_received:"); ok {
			count, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			return count
		}
	}
	t.Fatal("INFO has no connections")
	return 0
}

// decideOnce fails if the store leaves a call undecided.
func decideOnce(t *testing.T, s *Store) {
	items, calls := someCall("t")
	now := time.Now()
	s.Take(limit.DecisionTime{Now: now.UnixMicro(), Start: now, Timeout: 10 * time.Second}, items, calls)
	if items[0].Source != limit.SourceStore {
		t.Error("a call is undecided")
	}
}

// TestConnectionsAreReplaced: calls are decided while their connection is replaced again and
// again, with TLS and without.
func TestConnectionsAreReplaced(t *testing.T) {
	a := redistest.NewAuthority(t)
	node := redistest.Start(t, a.Args()...)
	for name, opts := range map[string]Options{"plain": {Addrs: []string{node.Addr}}, "TLS": {Addrs: []string{node.TLSAddr()}, TLS: tlsOf(t, a)}} {
		t.Run(name, func(t *testing.T) {
			before := received(t, node)
			opts.MaxConnAge = 40 * time.Millisecond
			s := openWithOptions(t, opts, opts.Addrs...)
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 200 {
						decideOnce(t, s)
					}
				})
			}
			wg.Wait()
			redistest.Eventually(t, 20*time.Second, "20 connections", func() bool {
				decideOnce(t, s)
				return received(t, node)-before > 20
			})
			if n := s.Stats().Undecided; n != [numKinds]int64{} {
				t.Errorf("undecided calls: %v", n)
			}
		})
	}
}

// TestReplaceWithABatchInFlight: a batch that is sent after the reader found none in flight
// gets its replies over the connection that it was sent on.
func TestReplaceWithABatchInFlight(t *testing.T) {
	node := redistest.Start(t)
	s, err := Open(t.Context(), Options{Addrs: []string{node.Addr}, IOTimeout: 5 * time.Second, DialTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	p := s.top.Load().nodes[node.Addr].pipeline // Run does not run: the test reads
	set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1/h", Burst: "100"})
	start := func(tenant string) (items []limit.Item, finish func() bool) {
		var b limit.Buffer
		now := time.Now()
		set.Resolve(&limit.Request{Tenant: tenant, Cost: int64(len(tenant))}, testAddrs, now.UnixMicro(), &b)
		at := limit.DecisionTime{Now: now.UnixMicro(), Start: now, Timeout: 5 * time.Second}
		return b.Items, s.Start(at, b.Items, b.Calls, func(uint64) {}, 0)
	}
	next, err := p.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, finishFirst := start("t")
	s.Flush() // sent, and the reader has seen nothing in flight before
	p.mu.Lock()
	p.next = next
	if p.replaceable() {
		t.Fatal("the connection would be replaced under a batch")
	}
	p.mu.Unlock()
	if _, err := p.read(); !errors.Is(err, errReplaced) {
		t.Fatal(err)
	}
	p.replace()
	second, finishSecond := start("tenants")
	s.Flush()
	_ = p.conn.SetReadDeadline(time.Now().Add(time.Second))
	go func() { _, _ = p.read() }()
	redistest.Eventually(t, 5*time.Second, "the second answer", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.inFlight) == 0
	})
	finishFirst()
	finishSecond()
	if first[0].Remaining != 99 || second[0].Remaining != 93 {
		t.Errorf("%d and %d units are left, want 99 and 93", first[0].Remaining, second[0].Remaining)
	}
}

// TestWritesDoNotWait: a node that does not read blocks no sender over TLS, and a connection
// that it leaves unread is closed.
func TestWritesDoNotWait(t *testing.T) {
	closed := make(chan struct{})
	addr := redistest.Listen(t, func(c net.Conn) {
		<-closed // without reading
		_ = c.Close()
	})
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c := &unblockedConn{Conn: raw, timeout: 200 * time.Millisecond}
	defer close(closed)
	block := make([]byte, 1<<20)
	began := time.Now()
	for range 5 {
		if _, err := c.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("writing took %s", took)
	}
	redistest.Eventually(t, 10*time.Second, "an error of a write", func() bool {
		_, err := c.Write(block)
		return err != nil
	})
	_ = c.Close()
}

// TestUnblockedConnKeepsTheOrder: all bytes arrive in order, also those that the goroutine
// writes.
func TestUnblockedConnKeepsTheOrder(t *testing.T) {
	got, full := make(chan []byte, 1), make(chan struct{})
	addr := redistest.Listen(t, func(c net.Conn) {
		<-full
		all, _ := io.ReadAll(c)
		got <- all
	})
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c := &unblockedConn{Conn: raw, timeout: 10 * time.Second}
	var want []byte
	for i := range 60 {
		b := bytes.Repeat([]byte{byte(i)}, 100_000+i)
		want = append(want, b...)
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		if i == 50 {
			c.mu.Lock()
			if !c.writing {
				t.Error("the kernel has taken all")
			}
			c.mu.Unlock()
			close(full)
		}
	}
	redistest.Eventually(t, 10*time.Second, "the last byte", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.writing
	})
	_ = c.Close()
	if all := <-got; !bytes.Equal(all, want) {
		t.Errorf("%d bytes arrived, want %d", len(all), len(want))
	}
}
