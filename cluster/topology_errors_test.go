package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/syncbuffer"
	"github.com/limitgate/limitgate/internal/wrongport"
	"github.com/limitgate/limitgate/limit"
)

// openWithout opens a store with StartWithout.
func openWithout(tb testing.TB, opts Options, addrs ...string) (*Store, error) {
	tb.Helper()
	opts.Addrs, opts.StartWithout = addrs, true
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	return Open(ctx, opts)
}

// downAddr returns the address of a Redis that is down and can be restarted there.
func downAddr(tb testing.TB) (*redistest.Node, string) {
	tb.Helper()
	node := redistest.Start(tb)
	node.Kill()
	return node, node.Addr
}

// TestStartWithoutMistakes checks that a store is started without if it may recover, and
// not if an operator has to fix it. Both return the sentences of an inspection.
func TestStartWithoutMistakes(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	locked := redistest.Start(t, "--requirepass", "x")
	narrow := redistest.Start(t)
	narrow.CLI(t, "ACL", "SETUSER", "default", "-@all", "+ping", "+role")
	without := func(rules ...string) []string {
		node := redistest.Start(t)
		node.CLI(t, append([]string{"ACL", "SETUSER", "default"}, rules...)...)
		return []string{node.Addr}
	}
	hung := redistest.Start(t)
	hung.Stop()
	web := httptest.NewServer(nil)
	defer web.Close()
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	secure.StartTLS()
	defer secure.Close()
	for name, row := range map[string]struct {
		addrs   []string
		text    string
		mistake bool
	}{
		"nobody":              {[]string{"127.0.0.1:1"}, "127.0.0.1:1: connection refused", false},
		"no name":             {[]string{"nowhere.invalid:6379"}, "its name is not known", false},
		"hung":                {[]string{hung.Addr}, "it takes connections and does not answer", false},
		"a closing server":    {[]string{redistest.Listen(t, func(net.Conn) {})}, "ends connections without an answer", false},
		"no slots":            {[]string{redistest.Start(t, "--cluster-enabled", "yes").Addr}, "run redis-cli --cluster create first", false},
		"two that are down":   {[]string{"127.0.0.1:1", hung.Addr}, "127.0.0.1:1: connection refused: start Redis, or correct the address; " + hung.Addr + ": it takes", false},
		"three of which two":  {[]string{"127.0.0.1:1", hung.Addr, "127.0.0.1:2"}, "127.0.0.1:1, 127.0.0.1:2: connection refused: start Redis, or correct the address; " + hung.Addr + ": it takes", false},
		"a replica":           {[]string{replica.Addr}, "it is a replica, and decisions are never read from one: give the address of its master, " + master.Addr, true},
		"a replica, one down": {[]string{"127.0.0.1:1", replica.Addr}, "it is a replica", true},
		"a password":          {[]string{locked.Addr}, "it requires a password: set --redis-password-file, and --redis-user unless it is that of the default user (NOAUTH)", true},
		"no rights":           {[]string{narrow.Addr}, "the user lacks +info: add it to the user on every node; docs/redis-acl.md has all the rights that it needs (NOPERM", true},
		"no EVALSHA":          {without("-evalsha"), "the user lacks +evalsha: add it", true},
		"no SCRIPT":           {without("-script"), "the user lacks +script|load: add it", true},
		"no SET":              {without("-set"), "the user lacks a right that the script needs: limitgate doctor names it", true},
		"other keys":          {without("resetkeys", "~other:*"), "the user may not use all keys lg:*: add ~lg:* to the user", true},
		"a web server":        {[]string{strings.TrimPrefix(web.URL, "http://")}, "it is no Redis, it answers HTTP: name the port of a Redis", true},
		"a limitgate's HTTP":  {[]string{wrongPort(t, wrongport.Plain)}, "it is no Redis, it answers HTTP: name the port of a Redis", true},
		"a limitgate's gRPC":  {[]string{wrongPort(t, wrongport.GRPC)}, "it is no Redis, it answers gRPC: name the port of a Redis", true},
		"a limitgate's TLS":   {[]string{wrongPort(t, wrongport.Encrypted)}, "it speaks TLS: set --redis-tls", true},
		"TLS":                 {[]string{strings.TrimPrefix(secure.URL, "https://")}, "it speaks TLS", true},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := openWithout(t, Options{}, row.addrs...)
			if (err != nil) != row.mistake {
				t.Fatalf("opened with %v", err)
			}
			if err == nil {
				err = s.Ping(t.Context())
				defer func() { _ = s.Close() }()
			}
			if err == nil || !strings.Contains(err.Error(), row.text) {
				t.Errorf("it returns %v, which lacks %q", err, row.text)
			}
		})
	}
}

// TestOpenForbidden: a cluster that forbids calls at some masters opens, as it decides those of the others, and not if all do.
func TestOpenForbidden(t *testing.T) {
	nodes := redistest.StartCluster(t, 3, 0)
	var addrs []string
	for i, m := range nodes.Masters(t) {
		var lines syncbuffer.Buffer
		s, err := openWithout(t, Options{Log: slog.New(slog.NewTextHandler(&lines, nil))}, m.Addr)
		if err != nil {
			t.Fatalf("with %d masters that forbid it: %v", i, err)
		}
		for _, addr := range addrs {
			if !strings.Contains(lines.String(), `msg="store degraded, using backstop" node=`+addr+" kind=auth") {
				t.Errorf("no line about %s:\n%s", addr, lines.String())
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		m.CLI(t, "ACL", "SETUSER", "default", "-set")
		addrs = append(addrs, m.Addr)
	}
	full := nodes.Masters(t)[0]
	full.CLI(t, "ACL", "SETUSER", "default", "+set")
	full.CLI(t, "CONFIG", "SET", "maxmemory", "1")
	if s, err := openWithout(t, Options{}, addrs...); err != nil {
		t.Errorf("a master without memory is not asked to decide later: %v", err)
	} else if err := s.Close(); err != nil {
		t.Error(err)
	}
	full.CLI(t, "CONFIG", "SET", "maxmemory", "0")
	full.CLI(t, "ACL", "SETUSER", "default", "-set")
	_, err := openWithout(t, Options{}, addrs...)
	if err == nil || !strings.Contains(err.Error(), "the user lacks a right that the script needs") || strings.Count(err.Error(), "lacks") != 1 {
		t.Errorf("opened with %v", err)
	}
	for _, addr := range addrs {
		if err != nil && !strings.Contains(err.Error(), addr) {
			t.Errorf("%v does not name %s", err, addr)
		}
	}
}

// TestStartWithoutDatabase: a database that a node does not have is a mistake.
func TestStartWithoutDatabase(t *testing.T) {
	s, err := openWithout(t, Options{DB: 99}, redistest.Start(t).Addr)
	if err == nil {
		_ = s.Close()
		t.Fatal("opened")
	}
	if want := "it has no database of that number: write a lower one"; !strings.Contains(err.Error(), want) {
		t.Errorf("it returns %v, which lacks %q", err, want)
	}
}

// wrongPort returns the address of a server that answers clients of Redis as a port of a limitgate does.
func wrongPort(t *testing.T, watch func(net.Listener, *slog.Logger) net.Listener) string {
	server := httptest.NewUnstartedServer(nil)
	server.Listener = watch(server.Listener, slog.New(slog.DiscardHandler))
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// TestStartWithoutUnless checks that a store is not started without unless StartWithout is
// set, nor if one of its addresses can be used.
func TestStartWithoutUnless(t *testing.T) {
	if _, err := Open(t.Context(), Options{Addrs: []string{"127.0.0.1:1"}}); err == nil {
		t.Error("it is opened, which was not allowed")
	}
	s, err := openWithout(t, Options{}, "127.0.0.1:1", redistest.Start(t).Addr)
	if err != nil || !s.Answers() {
		t.Fatalf("opened with %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestEmptyTopology checks that a store without a known master leaves everything undecided,
// returns an error from methods that have one, and decides once it has been reached.
func TestEmptyTopology(t *testing.T) {
	node, addr := downAddr(t)
	s, err := openWithout(t, Options{}, addr)
	if err != nil {
		t.Fatal(err)
	}
	running(t, s)
	undecided(t, s)
	notKnown(t, s)
	h := s.NewHeartbeat()
	if n, err := h.Beat(t.Context()); n != 0 || !errors.Is(err, errNoNode) {
		t.Errorf("a beat counts %d, %v", n, err)
	}
	if err := h.Leave(t.Context()); !errors.Is(err, errNoNode) {
		t.Errorf("leaving: %v", err)
	}
	node.Restart()
	<-s.Reached()
	redistest.Eventually(t, 10*time.Second, "a decision", func() bool {
		items, calls := someCall("t")
		s.Take(patient(), items, calls)
		return items[0].Source == limit.SourceStore && items[0].Allowed
	})
	if n, err := h.Beat(t.Context()); n != 1 || err != nil {
		t.Errorf("a beat counts %d, %v", n, err)
	}
	if err := s.Ping(t.Context()); err != nil || !s.Answers() {
		t.Errorf("reached, and %v", err)
	}
}

// patient returns a decision time with a distant deadline.
func patient() limit.DecisionTime {
	now := time.Now()
	return limit.DecisionTime{Now: now.UnixMicro(), Start: now, Timeout: 5 * time.Second}
}

// someCall returns a call for a unit of a tenant's bucket.
func someCall(tenant string) ([]limit.Item, []limit.Call) {
	key := limit.TenantKey(tenant)
	return []limit.Item{ProbeItem(key, ":x")}, []limit.Call{{First: 0, Last: 1}}
}

// undecided calls every method that decides on a store without masters.
func undecided(t *testing.T, s *Store) {
	t.Helper()
	const wrong = "%s: it is decided"
	items, calls := someCall("t")
	if s.Take(patient(), items, calls); items[0].Source != limit.SourceNone {
		t.Errorf(wrong, "Take")
	}
	if s.Peek(patient(), items, calls); items[0].Source != limit.SourceNone {
		t.Errorf(wrong, "Peek")
	}
	var done atomic.Int64
	end := s.Start(patient(), items, calls, func(uint64) { done.Add(1) }, 1)
	s.Flush()
	if end == nil || done.Load() != 1 || end() || items[0].Source != limit.SourceNone {
		t.Errorf(wrong+", or never answered", "Ask")
	}
	before := s.Stats().RefundsLost
	if s.Refund(patient(), items); s.Stats().RefundsLost != before+1 {
		t.Error("a refund that cannot be made is not counted as lost")
	}
	outcome, back := s.Settle(patient(), &limit.Settlement{Tenant: "t", ID: "x"})
	if outcome != limit.OutcomeUnknown || back != nil {
		t.Errorf(wrong, "Settle")
	}
	if s.Stats().Undecided[KindNoNode] < 5 {
		t.Errorf("trouble is counted as %v", s.Stats().Undecided)
	}
}

// notKnown calls the methods that look something up on a store without masters.
func notKnown(t *testing.T, s *Store) {
	t.Helper()
	items, _ := someCall("t")
	for _, tenant := range []string{"t", ""} {
		if n, err := s.Reset(t.Context(), tenant, "a"); n != 0 || err == nil {
			t.Errorf("RESET of %q: %d, %v", tenant, n, err)
		}
	}
	if there, err := s.Forget(t.Context(), "x"); there || err == nil {
		t.Errorf("Forget: %v, %v", there, err)
	}
	if s.Saturated(&items[0]) || s.Pause(&items[0]) != 0 || s.Locate(&items[0]) != "" {
		t.Errorf("saturated %v, pause %s, at %q", s.Saturated(&items[0]), s.Pause(&items[0]), s.Locate(&items[0]))
	}
	if s.IsCluster() || s.Answers() || s.Ping(t.Context()) == nil || len(s.Shards()) != 0 || len(s.Info(t.Context(), "memory")) != 0 {
		t.Errorf("it is well: %v", s.Shards())
	}
	if err := s.AddAdmitted(t.Context(), 1, map[string]float64{"a": 1}); err == nil {
		t.Error("what was admitted is added")
	}
	if _, _, err := s.Admitted(t.Context(), 1, 1); err == nil {
		t.Error("what was admitted is read")
	}
	select {
	case <-s.Reached():
		t.Error("it is reached")
	default:
	}
}

// TestIsHTTP: the first bytes of servers of HTTP, and of others.
func TestIsHTTP(t *testing.T) {
	for first, want := range map[string]bool{
		"HTTP/1.1 400": true, "<html>": true, "\x00\x00\x12\x04\x00": true, "\x00\x00\x12\x05\x00": false, "\x00\x00": false, "+OK": false, "220 smtp": false,
	} {
		if isHTTP([]byte(first)) != want {
			t.Errorf("%q: %t", first, !want)
		}
	}
}
