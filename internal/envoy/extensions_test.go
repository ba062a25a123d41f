package envoy

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// extensions are those of the rules of the tests. Buckets refill in a year, and windows last one.
const extensions = `
version: 1
domains:
  mesh:
    tenant_key: a
    rules:
      a:
        also:
          - {id: tight, rate: 2/d, burst: 2, algorithm: token_bucket}
          - {id: wide, rate: 100/300d}
      b: {algorithm: token_bucket, burst: 6, on_denied: count}
      remote_address: {algorithm: sliding_window, on_denied: nothing}
      q2:
        also: [{id: one, rate: 1/300d}]
`

// extended returns a service over a store with the rules and their extensions.
func extended(t *testing.T, store limiter.Store, timeout time.Duration, extensions string) *Service {
	t.Helper()
	opts, err := rlsconfig.Options{}.WithExtensions("ext.yaml", []byte(extensions))
	if err != nil {
		t.Fatal(err)
	}
	c, problems := rlsconfig.Parse([]rlsconfig.File{{Name: "rules.yaml", Content: []byte(rules)}}, opts)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	l := limiter.New(limiter.Options{Store: store, Backstop: backstop.New(backstop.Options{}), Timeout: timeout}, storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/366d"}))
	s := New(Options{Limiter: l, MayRefund: true, HashAddr: func(dst []byte, value string) []byte { return append(dst, "h"+strconv.Itoa(len(value))...) }})
	s.SetConfig(c)
	return s
}

// openStore opens a store on a Redis, which runs until the test ends.
func openStore(t *testing.T, addr string) *cluster.Store {
	t.Helper()
	store, err := cluster.Open(t.Context(), cluster.Options{Addrs: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	run, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- store.Run(run) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, store.Close()); err != nil {
			t.Error(err)
		}
	})
	return store
}

// TestExtensions: limits of extensions decide as those of limits files, over memory and over Redis.
func TestExtensions(t *testing.T) {
	node := redistest.Start(t)
	store := openStore(t, node.Addr)
	for name, store := range map[string]limiter.Store{"memory": memory.New(memory.Options{}), "Redis": store} {
		t.Run(name, func(t *testing.T) {
			s := extended(t, store, 5*time.Second, extensions)
			for i, c := range []struct {
				descriptors string
				hits        uint32
				want        string
			}{
				{"a=1", 0, "OK, OK 1/2"}, // the bucket of 2 is tighter than 5 a year
				{"a=1 hits=0", 0, "OK, OK 1/2"},
				{"a=1,b=1", 0, "OK, OK 0/2, OK 5/3"}, // a bucket may hold more than its rate
				{"a=1 hits=0", 0, "OVER_LIMIT, OVER_LIMIT 0/2"},
				{"a=1", 0, "OVER_LIMIT, OVER_LIMIT 0/2"},
				{"a=1 refund=1", 0, "OK, OK 1/2"}, // of all its limits
				{"a=1", 0, "OK, OK 0/2"},
				{"a=2", 0, "OK, OK 1/2"},
				{"b=2,a=1", 0, "OVER_LIMIT, OK 5/3, OVER_LIMIT 0/2"}, // b counts what is denied
				{"b=2 hits=0", 0, "OK, OK 5/3"},
				{"b=2", 9, "OVER_LIMIT, OVER_LIMIT 0/3"}, // and is empty then
				{"b=2 hits=0", 0, "OVER_LIMIT, OVER_LIMIT 0/3"},
				{"b=2 refund=2", 0, "OK, OK 2/3"},
				{"b=2", 0, "OK, OK 1/3"},
				{"remote_address=10.0.0.1", 0, "OK, OK 2/3"},
				{"remote_address=10.0.0.1 hits=5", 0, "OVER_LIMIT, OVER_LIMIT 0/3"}, // hits of its own, and nothing taken
				{"remote_address=10.0.0.1 hits=2", 0, "OK, OK 0/3"},
				{"q1=1,q2=1", 0, "OK, OK 1/2, OK 0/1"},
				{"q1=1,q2=1", 0, "OK, OK 0/2, OVER_LIMIT 0/1"}, // a quota is left
				{"q1=1,q2=1", 0, "OVER_LIMIT, OVER_LIMIT 0/2, OVER_LIMIT 0/1"},
			} {
				if got := ask(t, s, c.descriptors, c.hits); got != c.want {
					t.Errorf("%d: %s: %s, want %s", i, c.descriptors, got, c.want)
				}
			}
		})
	}
}

// TestLeasedDescriptors: two services with leases admit together what a limit holds, whatever else of their
// requests is denied and given back.
func TestLeasedDescriptors(t *testing.T) {
	const leased = `
version: 1
domains: {mesh: {rules: {vip: {algorithm: token_bucket, lease: {size: 2, ttl: 1s}}, b: {algorithm: token_bucket}}}}
`
	node := redistest.Start(t)
	services := []*Service{extended(t, openStore(t, node.Addr), 5*time.Second, leased), extended(t, openStore(t, node.Addr), 5*time.Second, leased)}
	if got := ask(t, services[0], "vip=look hits=0", 0); got != "OK, OK 100/100" {
		t.Errorf("a look: %s", got)
	}
	var wg sync.WaitGroup
	var admitted atomic.Int64
	for n, s := range services {
		for part := range 4 {
			wg.Go(func() {
				for i := range 60 {
					descriptors := "vip=1"
					if (i+part)%3 == 0 { // the other limit denies all but three of these
						descriptors += ",b=" + strconv.Itoa(n)
					}
					if strings.HasPrefix(ask(t, s, descriptors, 0), "OK") {
						admitted.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	if n := admitted.Load(); n < 90 || n > 100 { // leases hold a tenth at most, of 100
		t.Errorf("%d requests were admitted of a limit of 100", n)
	}
}

// TestClosedDomain: a domain that fails closed denies while its store is away: rules, those with a limit of
// their own, and limits of requests.
func TestClosedDomain(t *testing.T) {
	const closed = "version: 1\ndomains: {mesh: {on_error: closed, rules: {a: {on_error: open, also: [{id: more, rate: 9/h}]}, b: {algorithm: token_bucket}, q1: {on_error: open}}}}\n"
	node := redistest.Start(t)
	store, err := cluster.Open(t.Context(), cluster.Options{Addrs: []string{node.Addr}}) // which does not run
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := extended(t, store, 10*time.Millisecond, closed)
	for descriptors, want := range map[string]string{
		"q2=1": "OVER_LIMIT", "q1=1,q2=1": "OK", // quotas
		"q1=1": "OK", "b=1": "OVER_LIMIT", "vip=1": "OVER_LIMIT", "a=1": "OVER_LIMIT", "free=1": "OK",
		"exempt=1 limit=5/1": "OVER_LIMIT", "zzz=1": "OK",
	} {
		if got, _, _ := strings.Cut(ask(t, s, descriptors, 0), ","); got != want {
			t.Errorf("%s: %s, want %s", descriptors, got, want)
		}
	}
	open := extended(t, store, 10*time.Millisecond, "version: 1\n").config.Load()
	for _, c := range []struct {
		config *config
		want   string
	}{{s.config.Load(), "OVER_LIMIT"}, {open, "OK"}, {s.config.Load(), "OVER_LIMIT"}} { // as the present domain has it
		s.config.Store(c.config)
		if got, _, _ := strings.Cut(ask(t, s, "exempt=1 limit=5/1", 0), ","); got != c.want {
			t.Errorf("a limit of a request: %s, want %s", got, c.want)
		}
	}
	s.opts.Quota = true // of limits of requests too
	for descriptors, want := range map[string]string{"exempt=1 limit=5/1": "OVER_LIMIT", "exempt=1 limit=5/1,q1=9": "OK"} {
		if got, _, _ := strings.Cut(ask(t, s, descriptors, 0), ","); got != want {
			t.Errorf("quotas: %s: %s, want %s", descriptors, got, want)
		}
	}
}

// TestExtensionsReload: a change of the file comes into use, with mistakes it does not.
func TestExtensionsReload(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "ext.yaml")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "rules.yaml"), rules)
	write(file, "version: 1\ndomains: {mesh: {rules: {b: {algorithm: token_bucket, burst: 9}}}}\n")
	s := newService(t, Behaviour{})
	f := NewFolder(dir, file, rlsconfig.Options{}, s, slog.New(slog.DiscardHandler))
	if err := f.Load(); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, s, "b=1", 0); got != "OK, OK 8/3" {
		t.Errorf("with a burst of 9: %s", got)
	}
	write(file, "version: 1\ndomains: {mesh: {rules: {b: {burst: 9}}}}\n")
	if err := f.Load(); err == nil || !strings.Contains(err.Error(), "only a token_bucket has one") {
		t.Errorf("a mistake: %v", err)
	}
	write(file, "version: 1\ndomains: {}\n")
	if err := f.Load(); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, s, "b=1", 0); got != "OK, OK 2/3" {
		t.Errorf("without extensions: %s", got)
	}
}
