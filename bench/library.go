package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/limitgate/limitgate/internal/load"
)

// The libraries with which a service written in Go could limit.
const (
	// libraryRedisRate is go-redis/redis_rate, which decides on a Redis itself.
	libraryRedisRate = "redis_rate"
	// libraryGoRedis is redis/go-redis, which calls a limitgate.
	libraryGoRedis = "go-redis"
)

// libraryJob is the job of a library's process: the first line of the input of
// ServeLibrary. Each further line is the duration of a round in nanoseconds.
type libraryJob struct {
	Library string `json:"library"`
	Addr    string `json:"addr"`
	Callers int    `json:"callers"` // goroutines, each with a connection
	Tenants int    `json:"tenants"`
}

// libraryRound is the reply to such a line.
type libraryRound struct {
	Decisions int64   `json:"decisions"`
	Seconds   float64 `json:"seconds"`
	P50       int64   `json:"p50_ns"`
	P99       int64   `json:"p99_ns"`
	P999      int64   `json:"p99_9_ns"`
	Error     string  `json:"error,omitempty"`
}

// ServeLibrary decides with a library, in a process of its own whose CPU time can be
// measured separately. It reads its job from in, and returns at the end of in.
func ServeLibrary(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	if !lines.Scan() {
		return errors.New("serve library: no job was given")
	}
	var job libraryJob
	if err := json.Unmarshal(lines.Bytes(), &job); err != nil {
		return fmt.Errorf("read job: %w", err)
	}
	client := redis.NewClient(&redis.Options{
		Addr: job.Addr, PoolSize: job.Callers, MinIdleConns: job.Callers, MaxRetries: -1, DisableIdentity: true,
		Protocol: 2, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer func() { _ = client.Close() }()
	ask, err := asker(client, job.Library)
	if err != nil {
		return err
	}
	answers := json.NewEncoder(out)
	for lines.Scan() {
		var length time.Duration
		if err := json.Unmarshal(lines.Bytes(), &length); err != nil {
			return fmt.Errorf("read length of round: %w", err)
		}
		if err := answers.Encode(callAll(ctx, &job, ask, length)); err != nil {
			return fmt.Errorf("write round: %w", err)
		}
	}
	return lines.Err()
}

// asker returns the function that decides one request.
func asker(client *redis.Client, library string) (func(context.Context, string) (bool, error), error) {
	switch library {
	case libraryRedisRate:
		limiter := redis_rate.NewLimiter(client)
		limit := redis_rate.Limit{Rate: 1, Burst: burst, Period: unitMicros * time.Microsecond}
		return func(ctx context.Context, tenant string) (bool, error) {
			r, err := limiter.Allow(ctx, tenant, limit)
			return err == nil && r.Allowed == 1, err
		}, nil
	case libraryGoRedis:
		return func(ctx context.Context, tenant string) (bool, error) {
			fields, err := client.Do(ctx, "RL.CHECK", tenant, "-", "-", 1).Slice()
			return err == nil && len(fields) == 7 && fields[0] == int64(1) && fields[6] == "store", err
		}, nil
	default:
		return nil, fmt.Errorf("serve library: there is no %q", library)
	}
}

// callAll runs all callers for a duration.
func callAll(ctx context.Context, job *libraryJob, ask func(context.Context, string) (bool, error), length time.Duration) libraryRound {
	var (
		calls   sync.WaitGroup
		trouble atomic.Pointer[error]
	)
	latencies := make([]*hdrhistogram.Histogram, job.Callers)
	started := time.Now()
	for i := range latencies {
		latencies[i] = hdrhistogram.New(int64(time.Microsecond), int64(time.Minute), 3)
		calls.Go(func() {
			if err := call(ctx, latencies[i], job.Tenants, ask, started.Add(length)); err != nil {
				trouble.Store(&err)
			}
		})
	}
	calls.Wait()
	r := libraryRound{Seconds: time.Since(started).Seconds()}
	if err := trouble.Load(); err != nil {
		r.Error = (*err).Error()
	}
	all := latencies[0]
	for _, l := range latencies[1:] {
		all.Merge(l)
	}
	r.Decisions = all.TotalCount()
	r.P50, r.P99, r.P999 = all.ValueAtQuantile(50), all.ValueAtQuantile(99), all.ValueAtQuantile(99.9)
	return r
}

// call requests one tenant after the other until the deadline.
func call(ctx context.Context, latency *hdrhistogram.Histogram, tenants int, ask func(context.Context, string) (bool, error), deadline time.Time) error {
	before := time.Now()
	for before.Before(deadline) {
		allowed, err := ask(ctx, load.Fill(tenantWord, rand.Uint32N(uint32(tenants))))
		if err != nil {
			return fmt.Errorf("ask library: %w", err)
		}
		if !allowed {
			return errors.New("ask library: a request was not admitted by the store")
		}
		after := time.Now()
		if err := latency.RecordValue(int64(after.Sub(before))); err != nil {
			return err
		}
		before = after
	}
	return nil
}
