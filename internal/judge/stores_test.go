package judge

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/redistest"
	binaries "github.com/limitgate/limitgate/internal/servers"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// memoryEngine returns an engine on the memory store.
func memoryEngine(w way) *limiterEngine {
	return &limiterEngine{
		way:    w,
		open:   func() (limiter.Store, error) { return memory.New(memory.Options{Buckets: 100_000}), nil },
		set:    func(time.Time) {},
		failed: func() {}, patience: defaultPatience,
	}
}

// servers are a Redis, or the masters of a cluster, on a clock of their own.
type servers struct {
	tb      testing.TB
	clock   *redistest.Clock
	addrs   []string
	clients []*redis.Client
	store   *cluster.Store
	end     func()
}

// startServers starts a single Redis, or three masters.
func startServers(tb testing.TB, masters int) *servers {
	tb.Helper()
	programs := os.Getenv(binaries.BinaryFolderVariable)
	s := &servers{tb: tb, clock: redistest.UseClock(tb)}
	if masters == 1 {
		s.addrs = []string{redistest.Start(tb).Addr}
	} else {
		// The clock advances in steps during which no master may be considered failed.
		s.addrs = redistest.StartCluster(tb, masters, 0, "--cluster-node-timeout", "1000000000000000").Addrs()
	}
	tb.Setenv(binaries.BinaryFolderVariable, programs) // later servers have another clock
	for _, addr := range s.addrs {
		c := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: time.Minute, PoolSize: 1})
		tb.Cleanup(func() { _ = c.Close() })
		s.clients = append(s.clients, c)
	}
	tb.Cleanup(s.close)
	return s
}

// engine returns an engine on the servers.
func (s *servers) engine(w way) *limiterEngine {
	return &limiterEngine{way: w, open: s.empty, set: s.clock.Set, failed: s.close, patience: defaultPatience}
}

// empty returns the store, without any bucket.
func (s *servers) empty() (limiter.Store, error) {
	for _, c := range s.clients {
		if err := c.FlushAll(context.Background()).Err(); err != nil {
			return nil, fmt.Errorf("empty store: %w", err)
		}
	}
	if s.store != nil {
		return s.store, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	store, err := cluster.Open(ctx, cluster.Options{Addrs: s.addrs, IOTimeout: 10 * time.Second, DialTimeout: 10 * time.Second})
	if err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- store.Run(run) }()
	s.store = store
	s.end = func() {
		stop()
		if err := <-done; err != nil {
			s.tb.Error(err)
		}
		_ = store.Close()
	}
	return store, nil
}

// close ends the store; the next history gets a new one.
func (s *servers) close() {
	if s.store != nil {
		s.end()
		s.store = nil
	}
}
