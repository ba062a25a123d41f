//go:build !race

// The race detector makes pools drop items at random, so allocation counts are
// meaningless with it.

package integration

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
	"github.com/limitgate/limitgate/metrics"
	"github.com/limitgate/limitgate/server"
)

// TestAllocs counts the allocations of a check from socket to socket, with proxy and
// client in this process: none.
func TestAllocs(t *testing.T) {
	redis := redistest.SharedNode(t)
	for _, c := range []struct {
		name, limits, source string
		redis                bool
		most                 float64
	}{
		{"memory", "rate: 1000/d, burst: 10000000", "store", false, 0},
		{"denied in memory", "rate: 1/d", "store", false, 0},
		{"known refusal", "rate: 1/d", "cache", true, 0},
		{"lease", "rate: 1000/d, burst: 10000000, lease: {size: 400000}", "lease", true, 0},
		{"redis", "rate: 1000/d, burst: 10000000", "store", true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := proxyInProcess(t, c.limits, redis.Addr, c.redis)
			request := []byte("*5\r\n$8\r\nRL.CHECK\r\n$" + fmt.Sprint(len(t.Name())) + "\r\n" + t.Name() + "\r\n$1\r\n-\r\n$1\r\n-\r\n$1\r\n1\r\n")
			reply := make([]byte, 4096)
			one := func() string {
				if _, err := conn.Write(request); err != nil {
					t.Fatal(err)
				}
				n, err := conn.Read(reply)
				if err != nil {
					t.Fatal(err)
				}
				return string(reply[:n])
			}
			for range 100 {
				one()
			}
			if got := one(); got[len(got)-len(c.source)-2:] != c.source+"\r\n" {
				t.Fatalf("decided otherwise: %q", got)
			}
			if n := allocations(conn, request, reply, 20000); n > c.most {
				t.Errorf("%.2f allocations for a check, want at most %.0f", n, c.most)
			} else {
				t.Logf("%.3f allocations for a check", n)
			}
		})
	}
}

// timerAllocations bounds what the timers of the whole process allocate in a second, whatever a check takes.
const timerAllocations = 100

// allocations returns the allocations of the whole process for one check, to two digits, without those of timers, so that
// an occasional pool does not count.
func allocations(conn net.Conn, request, reply []byte, checks int) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	for range checks {
		_, _ = conn.Write(request)
		_, _ = conn.Read(reply)
	}
	runtime.ReadMemStats(&after)
	timers := int(time.Since(began).Seconds() * timerAllocations)
	return float64(max(0, int(after.Mallocs-before.Mallocs)-timers)*100/checks) / 100
}

// proxyInProcess returns a connection to a proxy in this process that enforces one limit
// of tenants, on Redis or in memory.
func proxyInProcess(t *testing.T, limits, redis string, onRedis bool) net.Conn {
	t.Helper()
	set, _, err := config.ParseLimits("limits.yaml", []byte("{version: 1, default_plan: p, plans: {p: [{id: tenant, by: [tenant], "+limits+"}]}}"), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := limit.NewAddrHasher(limit.RandomSecret(), limit.Prefixes{})
	if err != nil {
		t.Fatal(err)
	}
	loops, err := server.NewLoops(0)
	if err != nil {
		t.Fatal(err)
	}
	background(t, loops.Run)
	opts := limiter.Options{
		Store: memory.New(memory.Options{}), Backstop: backstop.New(backstop.Options{Instances: func() int { return 1 }}), Observer: metrics.NewDecisions(prometheus.NewRegistry()),
		Addrs: addrs, Timeout: 5 * time.Second, Instances: func() int { return 1 },
	}
	if onRedis {
		store, err := cluster.Open(t.Context(), cluster.Options{Addrs: []string{redis}, ToLoop: func(conn *net.TCPConn) (cluster.Socket, error) { return loops.Adopt(conn) }})
		if err != nil {
			t.Fatal(err)
		}
		background(t, store.Run)
		opts.Store, opts.DenyCacheSize, opts.DenyTTL = store, 100, time.Minute
	}
	decider := limiter.New(opts, set)
	handler := commands.NewHandler(commands.Options{Limiter: decider})
	s := server.New(server.Options{Flush: decider.Flush, Loops: loops}, func(p server.Peer) server.Session {
		return handler.NewSession(commands.Peer{ID: p.ID, Addr: p.Addr, Local: p.LocalAddr, Kill: p.Kill})
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	background(t, func(ctx context.Context) error { return s.Run(ctx, ln) })
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = io.WriteString(conn, "QUIT\r\n"); _ = conn.Close() })
	return conn
}

// background runs a function until the test ends.
func background(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
