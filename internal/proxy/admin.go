package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/adminserver"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/metrics"
)

// adminTimeout bounds pinging the store for a reply.
const adminTimeout = 2 * time.Second

// runAdmin serves the dashboard, /healthz, /readyz, /metrics and, if enabled, pprof.
func (p *Proxy) runAdmin(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { p.readyz(ctx, w, r) })
	if p.settings.TLSClientCA == "" || p.users != nil { // otherwise clients need a certificate, and here none
		p.dashboard.Register(mux)
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.metrics, promhttp.HandlerOpts{}))
	if p.settings.Pprof {
		mux.HandleFunc("GET /debug/pprof/", adminserver.TakingLong(pprof.Index))
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", adminserver.TakingLong(pprof.Profile))
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", adminserver.TakingLong(pprof.Trace))
	}
	const paths = "/ is the page, and /metrics, /healthz and /readyz are for monitors; --pprof adds /debug/pprof/; checks over HTTP are at the address of --http"
	return adminserver.Serve(ctx, p.admin, adminserver.Advise(mux, paths, ""), p.settings.ShutdownTimeout)
}

// readiness is the reply body of /readyz.
type readiness struct {
	Ready  bool    `json:"ready"`
	Limits string  `json:"limits"`
	Trial  string  `json:"limits_trial,omitempty"`
	Error  string  `json:"limits_error,omitempty"`
	RLS    string  `json:"rls_error,omitempty"`
	Store  string  `json:"store"`
	Detail string  `json:"store_error,omitempty"`
	Shards []shard `json:"shards,omitempty"`

	Instances       int    `json:"instances"`
	InstancesSource string `json:"instances_source"`
	InstancesError  string `json:"instances_error,omitempty"`
}

// shard describes one master of the store in a readiness.
type shard struct {
	Addr      string `json:"addr"`
	Breaker   string `json:"breaker"`
	Error     string `json:"error,omitempty"`
	NextProbe int64  `json:"next_probe_ms,omitempty"`
}

// readyz replies 200 while the proxy decides. The proxy also decides with stale limits
// and with a failing store; the reply reports both. It replies 503 while the proxy
// drains, and while the store forbids commands that the proxy needs, which only an
// operator can correct. Before the proxy has first reached its store, a setting selects
// the reply.
func (p *Proxy) readyz(serving context.Context, w http.ResponseWriter, r *http.Request) {
	st := p.limits.Status()
	a := readiness{Ready: serving.Err() == nil, Limits: "version " + st.Version, Trial: st.Trial, RLS: p.rls.configError(), Store: p.StoreKind()}
	if st.Error != "" {
		a.Limits, a.Error = "stale, version "+st.Version+" is in use", st.Error
	}
	if p.cluster != nil {
		ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
		defer cancel()
		shards, err := p.cluster.PingShards(ctx)
		if err != nil {
			a.Detail = err.Error()
			if advice := cluster.Advice(err); !strings.Contains(a.Detail, advice) && cluster.Forbidden(err) { // others may end by themselves
				a.Detail += "; " + advice
			}
			// A store that refuses new connections decides over those that are open.
			decides := slices.ContainsFunc(shards, func(sh cluster.Shard) bool { return sh.Err == nil })
			forbidden := cluster.Forbidden(err) && !decides
			a.Ready = a.Ready && !forbidden && (p.reached() || !p.settings.ReadyNeedsStore)
		}
		for _, sh := range shards {
			d := describeShard(sh, time.Now())
			a.Shards = append(a.Shards, shard{d.Addr, d.Breaker, d.Error, d.NextProbe.Milliseconds()})
			a.Ready = a.Ready && !cluster.Forbidden(sh.Err)
		}
	}
	n := p.count.Status()
	a.Instances, a.InstancesSource = n.Healthy, n.Source
	if n.Err != nil {
		a.InstancesError = n.Err.Error()
	}
	w.Header().Set("Content-Type", "application/json")
	if !a.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(a)
}

// registerMetrics registers the metrics that are read from the components at each scrape.
func (p *Proxy) registerMetrics() {
	r := p.metrics
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge := func(name, help string, read func() float64) { metrics.Gauge(r, name, help, read) }
	counter := func(name, help string, read func() int64) { metrics.Counter(r, name, help, read) }
	gauge("limitgate_connections", "Open client connections.", func() float64 { return float64(p.server.Stats().Connections) })
	for certificate, expires := range map[string]func() time.Time{"clients": p.clientsCertExpires, "redis": p.redisCertExpires} {
		if expires != nil {
			r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "limitgate_tls_certificate_not_after_timestamp_seconds", Help: "The end of the proxy's certificate in use, towards clients or Redis, in seconds since the epoch.",
				ConstLabels: prometheus.Labels{"certificate": certificate},
			}, func() float64 { return float64(expires().Unix()) }))
		}
	}
	counter("limitgate_tls_handshake_failures_total", "Connections of clients that ended in the TLS handshake.", func() int64 { return p.server.Stats().Handshakes })
	counter("limitgate_connections_evicted_total", "Connections closed because all together held too much memory.", func() int64 { return p.server.Stats().Evicted })
	counter("limitgate_protocol_errors_total", "Connections closed because of bytes that are no command.", func() int64 { return p.server.Stats().ProtocolErrors })
	metrics.RegisterInfo(r, "limitgate_config_info", "The version of the limits in use, always 1.", "version", func() string { return p.limiter.Limits().Version })
	metrics.RegisterInfo(r, "limitgate_build_info", "The version of the program, always 1.", "version", func() string { return p.version })
	gauge("limitgate_config_loaded_timestamp_seconds", "When the limits in use came into use, in seconds since the epoch.", func() float64 {
		return float64(p.limitsSince.Load()) / 1000
	})
	gauge("limitgate_config_stale", "1 while a newer limits file could not be loaded.", func() float64 {
		if p.limits.Status().Error != "" {
			return 1
		}
		return 0
	})
	gauge("limitgate_config_age_seconds", "Seconds since the limits in use were loaded, or a table of limits was known to have them.", func() float64 {
		return time.Since(p.limits.Status().Loaded).Seconds()
	})
	counter("limitgate_config_out_of_order_total", "Items of the limits that came after newer ones.", func() int64 { return p.limits.Status().OutOfOrder })
	counter("limitgate_config_repairs_total", "How often the whole table of limits was read again.", func() int64 { return p.limits.Status().Repairs })
	counter("limitgate_config_rejected_total", "Limits files that could not be loaded, and items that could not be used.", func() int64 { return p.limits.Status().Rejected })
	gauge("limitgate_healthy_instances", "Proxies that share the limits, as this one counts.", func() float64 { return float64(p.count.Healthy()) })
	counter("limitgate_instances_source_errors_total", "Times the source of that number failed.", func() int64 { return p.count.Status().Errors })
	metrics.RegisterLimits(r, func() []*limit.Limit { return p.limiter.Limits().Limits })
	counter("limitgate_lease_refreshes_total", "Times the store granted units for a lease.", p.limiter.LeaseRefreshes)
	if p.bypass != nil {
		p.bypass.registerMetrics(r)
	}
	if p.users != nil {
		p.users.registerMetrics(r)
	}
	metrics.RegisterTrial(r, p.rolloutMetrics)
	p.limits.RegisterMetrics(r)
	if p.memory != nil {
		gauge("limitgate_memory_buckets", "Buckets in the memory store.", func() float64 { return float64(p.memory.Len()) })
		counter("limitgate_memory_forgotten_total", "Calls that the memory store forgot for want of room, while they could be made again or settled.", p.memory.Forgotten)
		counter("limitgate_memory_overflows_total", "Decisions by overflow buckets because the memory store was full.", p.memory.Overflows)
	}
	counter("limitgate_backstop_capped_total", "Requests denied only because backstop.total_rate was used up.", p.backstop.Capped)
	if p.cluster != nil {
		metrics.RegisterStore(r, p.storeMetrics)
	}
}
