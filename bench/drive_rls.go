package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/limitgate/limitgate/internal/servers"
)

// rlsLoad is the load of a rate limit service: callers that share a connection, each with one request
// at a time.
type rlsLoad struct{ descriptors, callers int }

// rlsFiles writes the limits of rate limit services, and returns the folder that has them in
// ratelimit/config.
func (l *lab) rlsFiles() (root string, err error) {
	if root, err = l.newFolder(); err != nil {
		return "", err
	}
	folder := filepath.Join(root, "ratelimit", "config")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("create folder: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "bench.yaml"), []byte(rlsLimits), 0o600); err != nil {
		return "", fmt.Errorf("write limits: %w", err)
	}
	return root, nil
}

// rlsStore returns the Redis of both sides, and the folder of their limits.
func (l *lab) rlsStore(ctx context.Context) (store *backend, root string, err error) {
	if store, err = l.single(ctx); err != nil {
		return nil, "", err
	}
	root, err = l.rlsFiles()
	return store, root, err
}

// rlsGate is a side that asks Limitgate as Envoy does.
func rlsGate(load rlsLoad) side {
	return side{name: "limitgate, gRPC", open: func(ctx context.Context, l *lab) (driver, error) {
		store, root, err := l.rlsStore(ctx)
		if err != nil {
			return nil, err
		}
		flags := slices.Concat(patience, []string{"--rls", "127.0.0.1:0", "--rls-config", filepath.Join(root, "ratelimit", "config")})
		proxy, err := l.start(oneLimit, store, flags...)
		if err != nil {
			return nil, err
		}
		d := &rlsDriver{server: proxy, proxy: proxy, store: store, parts: parts{client: self(), proxy: []int{proxy.PID()}, store: store.pids()}}
		return d, d.connect(ctx, proxy.RLS, load, func() error { return nil })
	}}
}

// envoyRatelimit is a side that asks envoyproxy/ratelimit.
func envoyRatelimit(load rlsLoad) side {
	return side{name: "envoyproxy/ratelimit", open: func(ctx context.Context, l *lab) (driver, error) {
		store, root, err := l.rlsStore(ctx)
		if err != nil {
			return nil, err
		}
		server, err := servers.StartEnvoyRatelimit(l.envoyRatelimit, root, root, store.addrs()[0])
		if err != nil {
			return nil, fmt.Errorf("%w; --envoy-ratelimit takes the program that go build ./src/service_cmd makes of its source", err)
		}
		d := &rlsDriver{server: server, store: store, parts: parts{client: self(), proxy: []int{server.PID()}, store: store.pids()}}
		return d, d.connect(ctx, server.Addr, load, server.CheckRunning)
	}}
}

// rlsServer is the process of a rate limit service.
type rlsServer interface {
	io.Closer
	Log() string
}

// rlsDriver makes rounds of requests to a rate limit service.
type rlsDriver struct {
	server   rlsServer
	proxy    *servers.Limitgate // nil if the server is none
	store    *backend
	parts    parts
	conn     *grpc.ClientConn
	callers  int
	requests []*rls.RateLimitRequest
}

// connect opens the connection, and returns when the service is healthy. It closes the driver on an
// error, such as that of running.
func (d *rlsDriver) connect(ctx context.Context, addr string, load rlsLoad, running func() error) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	d.callers, d.requests = load.callers, rlsRequests(load.descriptors)
	again := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: rlsPause, Multiplier: 1, MaxDelay: rlsPause}, MinConnectTimeout: rlsPatience}
	d.conn, err = grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(again),
		grpc.WithInitialWindowSize(streamWindow), grpc.WithInitialConnWindowSize(connWindow))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	health := healthpb.NewHealthClient(d.conn)
	ctx, cancel := context.WithTimeout(ctx, rlsPatience)
	defer cancel()
	for {
		if err := running(); err != nil {
			return err
		}
		reply, err := health.Check(ctx, &healthpb.HealthCheckRequest{Service: "ratelimit"})
		switch {
		case err == nil && reply.GetStatus() == healthpb.HealthCheckResponse_SERVING:
			return nil
		case ctx.Err() != nil:
			return d.explain(fmt.Errorf("wait for a healthy service: %w", context.Cause(ctx)))
		}
		time.Sleep(rlsPause)
	}
}

const (
	// rlsPatience bounds the wait for a healthy service, and for answers after the end of a round.
	rlsPatience = 20 * time.Second
	// rlsPause is the pause between looks at a service that starts.
	rlsPause = 20 * time.Millisecond
	// streamWindow and connWindow are those of Envoy. With windows of their own clients do not
	// measure the connection by pings, as that of Go does otherwise and Envoy does not.
	streamWindow, connWindow = 16 << 20, 24 << 20
)

// explain adds the server's log to an error.
func (d *rlsDriver) explain(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	log := d.server.Log()
	return fmt.Errorf("%w; the end of the server's log:\n%s", err, log[max(0, len(log)-maxLog):])
}

func (d *rlsDriver) close() error {
	if d.conn != nil {
		_ = d.conn.Close()
	}
	return d.server.Close()
}

func (d *rlsDriver) round(ctx context.Context, length time.Duration) (*sample, error) {
	before, err := d.store.commands(ctx)
	if err != nil {
		return nil, err
	}
	runtime.GC() // the garbage of the last round must not be collected in this one
	m, err := startMeter(d.parts)
	if err != nil {
		return nil, err
	}
	s, err := d.askAll(ctx, length)
	if err != nil {
		return nil, d.explain(err)
	}
	if err := m.stop(s); err != nil {
		return nil, err
	}
	after, err := d.store.commands(ctx)
	if err != nil {
		return nil, err
	}
	s.commands = difference(after, before)
	return s, d.checkSources(ctx)
}

// askAll makes all callers send requests for a duration.
func (d *rlsDriver) askAll(ctx context.Context, length time.Duration) (*sample, error) {
	ctx, cancel := context.WithTimeout(ctx, length+rlsPatience)
	defer cancel()
	latencies := make([]*hdrhistogram.Histogram, d.callers)
	errs := make([]error, d.callers)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range latencies {
		wg.Go(func() {
			latencies[i] = hdrhistogram.New(int64(time.Microsecond), int64(time.Minute), 3)
			errs[i] = d.ask(ctx, latencies[i], began.Add(length))
		})
	}
	wg.Wait()
	seconds := time.Since(began).Seconds()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return sampleOfLatencies(latencies, seconds), nil
}

// ask sends one request after the other until the end of a round.
func (d *rlsDriver) ask(ctx context.Context, latency *hdrhistogram.Histogram, end time.Time) error {
	client := rls.NewRateLimitServiceClient(d.conn)
	for now := time.Now(); now.Before(end); {
		request := d.requests[rand.IntN(len(d.requests))]
		reply, err := client.ShouldRateLimit(ctx, request)
		if err != nil {
			return fmt.Errorf("ask service: %w", err)
		}
		if err := checkAnswer(request, reply); err != nil {
			return err
		}
		answered := time.Now()
		if err := latency.RecordValue(answered.Sub(now).Nanoseconds()); err != nil {
			return fmt.Errorf("record latency: %w", err)
		}
		now = answered
	}
	return nil
}

// checkAnswer returns an error for an answer that does not admit, or not by a limit for each descriptor.
func checkAnswer(request *rls.RateLimitRequest, reply *rls.RateLimitResponse) error {
	if reply.GetOverallCode() != rls.RateLimitResponse_OK {
		return errNotAdmitted
	}
	limited := 0
	for _, st := range reply.GetStatuses() {
		if st.GetCurrentLimit().GetRequestsPerUnit() == rlsUnits {
			limited++
		}
	}
	if want := len(request.GetDescriptors()); limited != want {
		return fmt.Errorf("the answer has limits for %d of %d descriptors", limited, want)
	}
	return nil
}

// checkSources returns an error if Limitgate made decisions without the store.
func (d *rlsDriver) checkSources(ctx context.Context) error {
	if d.proxy == nil {
		return nil
	}
	metrics, err := newAdmin(d.proxy, nil).metrics(ctx)
	if err != nil {
		return err
	}
	for name, value := range metrics {
		if strings.HasPrefix(name, "limitgate_decisions_total{") && strings.Contains(name, `source="backstop"`) && value > 0 {
			return d.explain(fmt.Errorf("check answers: %.0f decisions were made without the store", value))
		}
	}
	return nil
}

// profile takes a CPU profile of Limitgate under the load of the rounds.
func (d *rlsDriver) profile(ctx context.Context, path string) error {
	taken := make(chan error, 1)
	go func() { taken <- newAdmin(d.proxy, nil).profile(ctx, profileSeconds, path) }()
	_, err := d.askAll(ctx, (profileSeconds+1)*time.Second)
	return errors.Join(err, <-taken)
}
