package proxy

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/dashboard"
	"github.com/limitgate/limitgate/internal/denials"
	"github.com/limitgate/limitgate/internal/emf"
	"github.com/limitgate/limitgate/internal/httpapi"
	"github.com/limitgate/limitgate/internal/instances"
	"github.com/limitgate/limitgate/internal/logthrottle"
	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/internal/tracing"
	"github.com/limitgate/limitgate/internal/webhook"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
	"github.com/limitgate/limitgate/metrics"
	"github.com/limitgate/limitgate/server"
)

// Options configure a Proxy.
type Options struct {
	Settings *config.Settings
	Log      *slog.Logger
	Version  string
	// Stdout receives the lines of the setting emf, if it names stdout.
	Stdout io.Writer
	// LogLevel is the level of Log, which CONFIG SET loglevel changes. It may be nil.
	LogLevel *slog.LevelVar
	// Reload makes the proxy load its limits again, as SIGHUP does. It may be nil.
	Reload <-chan os.Signal
	// Ready is called once, when the proxy is about to accept clients. It may be nil.
	Ready func()
}

// Proxy is a running limitgate.
type Proxy struct {
	settings *config.Settings
	log      *slog.Logger
	version  string // of the program

	limits       limitsSource
	users        *clientUsers  // nil if clients need not authenticate
	bypass       *bypassTokens // nil if requests cannot pass the limits
	ready        func()        // unless nil, called when clients are accepted
	reload       <-chan os.Signal
	reloadLimits chan os.Signal    // receives what reload receives
	memory       *memory.Store     // nil with a Redis
	cluster      *cluster.Store    // nil without a Redis
	hasher       *limit.AddrHasher // of the limiter
	storeOptions cluster.Options   // how the store is reached
	storeParts   []run.Part        // run beside the store
	// redisCertExpires and clientsCertExpires return the ends of the proxy's certificates; nil
	// without one.
	redisCertExpires, clientsCertExpires func() time.Time
	count                                *instances.Count
	backstop                             *backstop.Backstop
	rolloutWatch                         *rolloutWatch
	limitsSince, trialSince              atomic.Int64       // when the limits in use, and those on trial, came into use, in ms
	history                              *dashboard.History // nil without an admin address
	denials                              *denials.Ring
	limiter                              *limiter.Limiter
	handler                              *commands.Handler
	shortHolds                           *logthrottle.Throttle // lines about them
	loops                                *server.Loops
	server                               *server.Server
	metrics                              *prometheus.Registry
	decisions                            *metrics.Decisions
	dashboard                            *dashboard.Dashboard
	emf                                  *emf.Writer     // nil without the setting
	webhook                              *webhook.Sender // nil without the setting
	tracer                               *tracing.Tracer // nil without the setting

	front, admin net.Listener

	rls      *rateLimitService // nil without the setting
	rlsConns int               // most connections to it

	http      *httpapi.Server // nil without checks over HTTP
	httpFront net.Listener
}

// New builds a proxy from the bottom up. It is listening when New returns. The caller calls
// Run next, which releases everything.
func New(ctx context.Context, opts Options) (p *Proxy, err error) {
	s := opts.Settings
	p = &Proxy{settings: s, log: opts.Log, version: opts.Version, metrics: prometheus.NewRegistry(), reload: opts.Reload, ready: opts.Ready, reloadLimits: make(chan os.Signal, 1), shortHolds: &logthrottle.Throttle{Period: shortHoldsQuiet}}
	s.MaxConns = boundConnsByLimit(s.MaxConns, p.log)
	if s.RLS.Listen != "" { // the descriptors are for both
		p.rlsConns = rlsConns(s.MaxConns)
		s.MaxConns = max(1, s.MaxConns-p.rlsConns)
	}
	if p.users, err = openUsers(ctx, s, p.log); err != nil {
		return nil, err
	}
	if p.limits, err = p.openLimits(ctx, p.reloadLimits); err != nil {
		return nil, err
	}
	built := p // a return of an error sets p to nil
	defer func() {
		if err != nil {
			built.closeUnrun()
		}
	}()
	if p.loops, err = server.NewLoops(0); err != nil {
		return nil, err
	}
	var agree agreement
	if p.hasher, agree, err = p.addrHasher(); err != nil {
		return nil, err
	}
	store, err := p.openStore(ctx, agree)
	if err != nil {
		return nil, err
	}
	if c := p.limits.Cell(); c != nil {
		c.store = p.cluster
	}
	p.count = p.newCount()
	p.backstop = backstop.New(backstop.Options{Instances: p.count.Healthy, TotalRate: int64(s.BackstopTotalRate)})
	p.rolloutWatch = p.newRolloutWatch(p.hasher)
	p.rolloutWatch.comparison.Begin(p.limits.Set(), p.limits.Threshold())
	if p.bypass, err = openBypass(ctx, s, p.count.Healthy, p.log); err != nil {
		return nil, err
	}
	if err := p.openOutputs(ctx, opts.Stdout); err != nil {
		return nil, err
	}
	p.openLimiter(store, p.hasher)
	p.followLimits()
	p.handler = p.newHandler(opts)
	p.dashboard = p.newDashboard()
	conns := serverOptions(s)
	if err := conns.Validate(); err != nil {
		return nil, err
	}
	conns.Flush, conns.Loops, conns.Log = p.limiter.Flush, p.loops, p.log
	p.server = server.New(conns, p.newSession)
	if err := p.openFronts(p.hasher); err != nil {
		return nil, err
	}
	p.registerMetrics()
	return p, nil
}

// closeUnrun releases the parts of a proxy for which Run is not called.
func (p *Proxy) closeUnrun() {
	p.limits.Close()
	if p.cluster != nil {
		_ = p.cluster.Close()
	}
	if p.loops != nil {
		p.loops.Close()
	}
	if p.emf != nil {
		p.emf.Close()
	}
}

// newHandler returns the handler of commands.
func (p *Proxy) newHandler(opts Options) *commands.Handler {
	o := commands.Options{
		Limiter: p.limiter, Denials: p.denials.Last, Activity: p.activity, Limits: limitsView{p.limits, p.log}, Version: opts.Version, LogLevel: opts.LogLevel, ShortHold: p.warnOfShortHold, Store: p.StoreKind(), Shards: p.shards,
		Announce: p.settings.ClusterAnnounce, Settings: redisSettings(p.settings),
	}
	if p.users != nil {
		o.Users = p.users.auth
	}
	if p.settings.Users != "" {
		o.ReloadUsers = p.users.reload
	}
	if p.bypass != nil {
		o.Bypass = p.bypass.tokens
	}
	handler := commands.NewHandler(o)
	if p.users != nil {
		p.users.replace = handler.ReplaceUsers
	}
	return handler
}

// passSignals makes a signal load the limits and the users again, until ctx ends.
func (p *Proxy) passSignals(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case signal := <-p.reload:
			if p.users != nil {
				p.users.trigger()
			}
			if p.bypass != nil {
				p.bypass.trigger()
			}
			select {
			case p.reloadLimits <- signal:
			default: // a reload is about to begin
			}
		}
	}
}

// openLimits loads the limits of the settings.
func (p *Proxy) openLimits(ctx context.Context, reload <-chan os.Signal) (limitsSource, error) {
	delays := metrics.NewPropagation(p.metrics)
	if p.settings.LimitsTable() != "" {
		return openTable(ctx, p.settings, p.log, reload, func(d time.Duration) { delays.Observe(d.Seconds()) })
	}
	return openFile(p.settings, p.log, reload)
}

func (p *Proxy) newSession(peer server.Peer) server.Session {
	return p.handler.NewSession(commands.Peer{
		ID: peer.ID, Addr: peer.Addr, Local: peer.LocalAddr, Kill: peer.Kill,
		SetAuthenticated: peer.SetAuthenticated, Certificate: peer.Certificate,
	})
}

// Run serves until ctx ends, and then drains. The servers stop first; then the limiter
// returns its leased units and slots; then the last lines of metrics, events and spans are
// delivered; then the proxy stops counting as an instance; then the connections to the store are
// closed; then the loops end that read them all.
func (p *Proxy) Run(ctx context.Context) error {
	without := !p.reached()
	if without {
		p.warnWithout(ctx)
	}
	st := p.limits.Status()
	p.log.Info("listening", "addr", p.front.Addr().String(), "admin", p.adminAddr(), "http", p.httpAddr(), "rls", p.rls.addr(), "store", p.StoreKind(), "instances", p.settings.Instances.String(), "limits", st.Source, "version", st.Version)
	afterFront := []run.Part{p.limiter.Run}
	if p.bypass != nil { // which logs the uses of the last requests
		afterFront = append(afterFront, p.bypass.tokens.Run)
	}
	stages := []func(context.Context) error{
		func(ctx context.Context) error { return run.All(ctx, p.fronts(without)...) },
		func(ctx context.Context) error { return run.All(ctx, afterFront...) },
	}
	if outputs := p.outputs(); len(outputs) > 0 {
		stages = append(stages, func(ctx context.Context) error { return run.All(ctx, outputs...) })
	}
	stages = append(stages, p.count.Run)
	if p.cluster != nil {
		stages = append(stages, func(ctx context.Context) error { return run.All(ctx, append(p.storeParts, p.cluster.Run)...) })
		defer func() { _ = p.cluster.Close() }()
	}
	err := run.Stages(ctx, append(stages, p.loops.Run)...)
	p.log.Info("stopped")
	return err
}

// fronts returns the parts that run until the proxy drains: what answers clients, and what changes
// limits and rights. without reports that the store was not reached at the start.
func (p *Proxy) fronts(without bool) []run.Part {
	parts := []run.Part{
		func(ctx context.Context) error {
			p.count.WaitFirst(ctx)
			if p.ready != nil && ctx.Err() == nil {
				p.ready()
			}
			return p.server.Run(ctx, p.front)
		},
		p.limits.Run,
		p.watchRollout,
		p.watchRawPaths,
		p.passSignals,
	}
	if p.users != nil {
		parts = append(parts, p.users.parts()...)
	}
	if p.bypass != nil {
		parts = append(parts, p.bypass.parts()...)
	}
	if p.admin != nil {
		parts = append(parts, p.runAdmin, p.dashboard.Run, p.history.Run)
	}
	if p.http != nil {
		parts = append(parts, p.runHTTP)
	}
	if p.rls != nil {
		parts = append(parts, func(ctx context.Context) error {
			p.count.WaitFirst(ctx)
			return p.rls.run(ctx)
		})
	}
	if p.memory != nil {
		parts = append(parts, p.watchOverflow)
	}
	if p.cluster != nil {
		parts = append(parts, func(ctx context.Context) error { return p.watchStore(ctx, without) }, p.adviseCeiling, p.watchTotalRate, p.watchSettings)
	}
	return parts
}

// Addr returns the address that clients connect to.
func (p *Proxy) Addr() net.Addr { return p.front.Addr() }

// Limits returns the limits in use.
func (p *Proxy) Limits() *limit.Set { return p.limits.Set() }

// RLSAddrs returns the address of Envoy's rate limit service, which must be on, and that of its requests as
// JSON, or "".
func (p *Proxy) RLSAddrs() (grpc, json string) {
	if p.rls.http != nil {
		json = p.rls.http.Addr().String()
	}
	return p.rls.addr(), json
}

// adminAddr returns the address of health and metrics, or off.
func (p *Proxy) adminAddr() string {
	if p.admin == nil {
		return "off"
	}
	return p.admin.Addr().String()
}

// overflowPause is the interval at which an overflow of the memory store is logged.
const overflowPause = time.Minute

// watchOverflow logs when the memory store is full of live buckets.
func (p *Proxy) watchOverflow(ctx context.Context) error {
	tick := time.NewTicker(overflowPause)
	defer tick.Stop()
	for before := int64(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if n := p.memory.Overflows(); n > before {
			p.log.Warn("the memory store is full: new buckets share one per limit; raise memory.buckets", "decisions", n-before, "buckets", p.memory.Len())
			before = n
		}
	}
}

// limitsView exposes the limits source to the commands.
type limitsView struct {
	source limitsSource
	log    *slog.Logger
}

func (v limitsView) Reload() error { return reload(v.source, byClient, v.log) }

func (v limitsView) Promote() error {
	trial := v.source.Status().Trial
	err := v.source.Promote()
	if err == nil {
		v.log.Warn("canary limits promoted to all tenants by RL.CONFIG PROMOTE", "trial", trial)
	}
	return err
}

func (v limitsView) Abort() error {
	trial := v.source.Status().Trial
	err := v.source.TakeBack("", "aborted by RL.CONFIG ABORT")
	if err == nil {
		v.log.Warn("canary limits taken back by RL.CONFIG ABORT", "trial", trial)
	}
	return err
}

func (v limitsView) Status() commands.LimitsStatus {
	st := v.source.Status()
	return commands.LimitsStatus{Version: st.Version, Source: st.Source, Trial: st.Trial, Loaded: st.Loaded, Error: st.Error}
}
