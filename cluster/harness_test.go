package cluster

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/server"
)

func TestMain(m *testing.M) {
	var err error
	if loops, err = server.NewLoops(2); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = loops.Run(ctx) })
	code := redistest.Main(m)
	stop()
	running.Wait()
	os.Exit(code)
}

// loops are the event loops of the stores of this package's tests.
var loops *server.Loops

// toLoop is Options.ToLoop for the stores of tests. Tests with encrypted and wrapped
// connections use goroutines.
func toLoop(conn *net.TCPConn) (Socket, error) {
	s, err := loops.Adopt(conn)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// fakeClockLine replaces clockLine in the scripts of tests: they read the time from two
// keys of a single Redis.
const fakeClockLine = "local time = redis.call('MGET', 'clock:s', 'clock:us')\n"

// fakeTTL is the TTL of a key by that clock, which Redis does not expire keys by.
const fakeTTL = "(function(at) return type(at) == 'number' and at >= 0 and at - now / 1000 or at end)(redis.pcall('PEXPIRETIME', key))"

// onFakeClock returns the script with a clock that tests set.
func onFakeClock(tb testing.TB) script {
	tb.Helper()
	return onFakeClockIn(tb, writeFormat)
}

// onFakeClockIn returns it for a format of new buckets.
func onFakeClockIn(tb testing.TB, format int) script {
	tb.Helper()
	if n := strings.Count(preludeLua, clockLine); n != 1 {
		tb.Fatalf("the scripts read the clock on %d lines, want 1", n)
	}
	text := strings.Replace(newDecideScript(format).text, clockLine, fakeClockLine, 1)
	text = strings.ReplaceAll(text, "redis.pcall('PTTL', key)", fakeTTL)
	if strings.Contains(text, "'TIME'") {
		tb.Fatal("a script reads the clock on a line that is not marked")
	}
	return newScript(text)
}

// clockArgs returns the command that sets the fake clock, in microseconds.
func clockArgs(now int64) []string {
	return []string{"MSET", "clock:s", strconv.FormatInt(now/1e6, 10), "clock:us", strconv.FormatInt(now%1e6, 10)}
}

// open returns a store on addrs that runs until the test ends.
func open(tb testing.TB, addrs ...string) *Store {
	tb.Helper()
	return openWithOptions(tb, Options{}, addrs...)
}

func openWithOptions(tb testing.TB, opts Options, addrs ...string) *Store {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	opts.Addrs, opts.IOTimeout, opts.DialTimeout, opts.ToLoop = addrs, 5*time.Second, 5*time.Second, toLoop
	s, err := Open(ctx, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return running(tb, s)
}

// running runs a store until the test ends.
func running(tb testing.TB, s *Store) *Store {
	tb.Helper()
	run, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(run) }()
	tb.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			tb.Error(err)
		}
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// client returns a client for the test's own commands.
func client(tb testing.TB, addr string) *redis.Client {
	tb.Helper()
	o := Options{IOTimeout: time.Minute, DialTimeout: 5 * time.Second, PoolSize: 4}
	c := redis.NewClient(o.clientOptions(addr))
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// storeTime returns the time of the store's clock, which decisions use.
func storeTime(tb testing.TB, c *redis.Client) time.Time {
	tb.Helper()
	now, err := c.Time(tb.Context()).Result()
	if err != nil {
		tb.Fatal(err)
	}
	return now
}

// spec is one limit of a test plan.
type spec = storetest.Spec

func compile(tb testing.TB, specs ...spec) *limit.Set {
	tb.Helper()
	return storetest.Compile(tb, specs...)
}

var testAddrs = func() *limit.AddrHasher {
	h, err := limit.NewAddrHasher([]byte("a secret for tests only"), limit.Prefixes{})
	if err != nil {
		panic(err)
	}
	return h
}()
