package proxy

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/adminserver"
	"github.com/limitgate/limitgate/internal/envoy"
	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/internal/wrongport"
	"github.com/limitgate/limitgate/limit"
)

// defaultNearLimit is the part of a limit above which hits count as near it.
const defaultNearLimit = 0.8

// rateLimitService is Envoy's rate limit service with its listeners.
type rateLimitService struct {
	service *envoy.Service
	server  *envoy.Server
	follow  run.Part      // follows the configuration
	healthy func() bool   // there is a configuration, or none is needed
	problem func() string // why the configuration in use is not the newest, or ""
	front   net.Listener
	http    net.Listener // nil without the setting, as debug is
	debug   net.Listener

	shutdown time.Duration
}

// openRateLimitService returns the service of the settings, or nil. Its configuration is loaded.
func (p *Proxy) openRateLimitService(addrs *limit.AddrHasher) (r *rateLimitService, err error) {
	s := &p.settings.RLS
	if s.Listen == "" {
		return nil, nil
	}
	r = &rateLimitService{shutdown: p.settings.ShutdownTimeout}
	r.service = envoy.New(envoy.Options{
		Limiter: p.limiter, HashAddr: addrs.AppendText, MayRefund: s.Refunds, Native: s.Native, Log: p.log,
		Behaviour: envoy.Behaviour{
			Shadow: s.Shadow, Quota: s.Quota, Metadata: s.Metadata, NearLimit: cmp.Or(s.NearLimit, defaultNearLimit),
			ResponseHeaders: (*envoy.HeaderNames)(s.ResponseHeaders), RequestHeaders: (*envoy.HeaderNames)(s.RequestHeaders),
		},
	})
	if err := r.openConfig(s, p.log); err != nil {
		return nil, err
	}
	if !s.HealthyWithConfig {
		r.healthy = func() bool { return true }
	}
	encrypted, err := p.rlsTLS()
	if err != nil {
		return nil, fmt.Errorf("listen for the rate limit service by TLS: %w", err)
	}
	r.server = envoy.NewServer(r.service, envoy.ServerOptions{
		TLS: encrypted, MaxConns: p.rlsConns, MaxConnectionAge: s.MaxConnectionAge, MaxConnectionAgeGrace: s.MaxConnectionAgeGrace, ShutdownTimeout: p.settings.ShutdownTimeout, Log: p.log,
	})
	if err := r.listen(p.settings); err != nil {
		return nil, err
	}
	watch := wrongport.GRPC
	if encrypted != nil {
		watch = wrongport.Encrypted
	}
	r.front = watch(r.front, p.log)
	for _, l := range []*net.Listener{&r.http, &r.debug} {
		if *l != nil {
			*l = wrongport.Plain(*l, p.log)
		}
	}
	p.metrics.MustRegister(r.service.Stats())
	return r, nil
}

// listen opens the listeners.
func (r *rateLimitService) listen(s *config.Settings) (err error) {
	if path, ok := strings.CutPrefix(s.RLS.Listen, config.UnixPrefix); ok {
		r.front, err = listenUnix(path, "the rate limit service", s.NameOf("rls.listen"))
	} else if r.front, err = net.Listen("tcp", s.RLS.Listen); err != nil {
		err = fmt.Errorf("listen for the rate limit service: %w%s", err, ListenAdvice(err, s.NameOf("rls.listen")))
	}
	if err != nil {
		return err
	}
	for _, of := range []struct {
		addr, setting string
		listener      *net.Listener
	}{{s.RLS.HTTP, "rls.http", &r.http}, {s.RLS.Debug, "rls.debug", &r.debug}} {
		if of.addr == "" {
			continue
		}
		if *of.listener, err = net.Listen("tcp", of.addr); err != nil {
			r.close()
			return fmt.Errorf("listen for the rate limit service: %w%s", err, ListenAdvice(err, s.NameOf(of.setting)))
		}
	}
	return nil
}

// close closes the listeners of a service that does not run.
func (r *rateLimitService) close() {
	for _, l := range []net.Listener{r.front, r.http, r.debug} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// run serves until ctx ends.
func (r *rateLimitService) run(ctx context.Context) error {
	parts := []run.Part{r.follow, r.reportHealth, func(ctx context.Context) error { return r.server.Run(ctx, r.front) }}
	if r.http != nil {
		parts = append(parts, func(ctx context.Context) error {
			return adminserver.ServeBodies(ctx, r.http, r.httpPaths(ctx), r.shutdown)
		})
	}
	if r.debug != nil {
		parts = append(parts, func(ctx context.Context) error {
			return adminserver.ServeBodies(ctx, r.debug, r.debugPaths(), r.shutdown)
		})
	}
	return run.All(ctx, parts...)
}

// httpPaths are those of requests as JSON, until ctx ends.
func (r *rateLimitService) httpPaths(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /json", r.service.JSON)
	mux.HandleFunc("GET /healthcheck", func(w http.ResponseWriter, _ *http.Request) {
		if ctx.Err() != nil || !r.healthy() {
			http.Error(w, "draining, or without a configuration", http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte("OK"))
	})
	return adminserver.Advise(mux, "the paths are POST /json and GET /healthcheck", envoy.ExampleJSON)
}

// debugPaths show the limits and the counters.
func (r *rateLimitService) debugPaths() http.Handler {
	stats := prometheus.NewRegistry()
	stats.MustRegister(r.service.Stats())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "/rlconfig: print out the limits\n/stats: print out the counters, as Prometheus reads them\nPOST /explain: which rule and counter each descriptor of a request meets, as /json takes it, and why\n")
	})
	mux.HandleFunc("GET /rlconfig", func(w http.ResponseWriter, _ *http.Request) {
		for _, line := range r.service.Limits() {
			_, _ = io.WriteString(w, line+"\n")
		}
	})
	mux.HandleFunc("POST /explain", r.service.Explain)
	mux.Handle("GET /stats", promhttp.HandlerFor(stats, promhttp.HandlerOpts{}))
	return adminserver.Advise(mux, "the paths are GET /rlconfig, GET /stats and POST /explain", envoy.ExampleJSON)
}

// configError returns the first problem of the configuration while an earlier one is in use, or "".
func (r *rateLimitService) configError() string {
	if r == nil || r.problem == nil {
		return ""
	}
	first, others, more := strings.Cut(r.problem(), "\n")
	if more {
		first += fmt.Sprintf("; and %d more", 1+strings.Count(strings.TrimSpace(others), "\n"))
	}
	return first
}

// addr returns the address of gRPC, or off.
func (r *rateLimitService) addr() string {
	if r == nil {
		return "off"
	}
	return r.front.Addr().String()
}
