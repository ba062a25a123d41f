package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/instances"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
	"github.com/limitgate/limitgate/metrics"
	"github.com/limitgate/limitgate/server"
)

// proxy is a running limitgate.
type proxy struct {
	env      *environment
	settings *config.Settings
	log      *slog.Logger

	limits       limitsSource
	memory       *memory.Store  // nil with a Redis
	cluster      *cluster.Store // nil without a Redis
	count        *instances.Count
	backstop     *backstop.Backstop
	rolloutWatch *rolloutWatch
	limiter      *limiter.Limiter
	handler      *commands.Handler
	server       *server.Server
	metrics      *prometheus.Registry

	front, admin net.Listener
}

// newProxy builds a proxy from the bottom up. It is listening when newProxy returns.
func newProxy(ctx context.Context, env *environment, s *config.Settings) (p *proxy, err error) {
	p = &proxy{env: env, settings: s, log: newLog(env, s), metrics: prometheus.NewRegistry()}
	s.MaxConns = boundConnsByLimit(s.MaxConns, p.log)
	if p.limits, err = p.openLimits(ctx); err != nil {
		return nil, err
	}
	limits := p.limits
	defer func() {
		if t, ok := limits.(*tableSource); ok && err != nil { // run is not called for it
			t.end()
		}
	}()
	addrs, agree, err := p.addrHasher()
	if err != nil {
		return nil, err
	}
	store, err := p.openStore(ctx, agree)
	if err != nil {
		return nil, err
	}
	if c := p.cell(); c != nil {
		c.store = p.cluster
	}
	p.count = p.newCount()
	p.backstop = backstop.New(backstop.Options{Instances: p.count.Healthy, TotalRate: int64(s.BackstopTotalRate)})
	p.rolloutWatch = p.newRolloutWatch(addrs)
	p.rolloutWatch.comparison.Begin(p.limits.Set(), p.limits.Threshold())
	p.limiter = limiter.New(limiter.Options{
		Store:       store,
		Backstop:    p.backstop,
		Observer:    p.observer(),
		Addrs:       addrs,
		Timeout:     s.DecisionTimeout,
		RetryJitter: s.RetryJitter,
		Instances:   p.count.Healthy,
		Trial:       p.rolloutWatch.comparison.Observe,
		Unlisted:    p.unlisted(),
		// A decision in this process costs as little as a lookup in the deny cache, so a
		// memory store has none.
		DenyCacheSize: p.denyCacheSize(),
		DenyTTL:       s.DenyCacheMaxTTL,
	}, p.limits.Set())
	p.limits.OnChange(p.setLimits)
	p.handler = commands.NewHandler(commands.Options{
		Limiter: p.limiter, Limits: limitsView{p.limits, p.log}, Version: version, Store: p.storeKind(), Shards: p.shards,
		Announce: s.ClusterAnnounce, Settings: redisSettings(s),
	})
	opts := serverOptions(s)
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts.Flush = p.limiter.Flush
	p.server = server.New(opts, p.newSession)
	p.registerMetrics()
	p.front, p.admin, err = listen(s)
	return p, err
}

// openLimits loads the limits of the settings.
func (p *proxy) openLimits(ctx context.Context) (limitsSource, error) {
	delays := metrics.NewPropagation(p.metrics)
	if p.settings.LimitsTable() != "" {
		return openTable(ctx, p.settings, p.log, func(d time.Duration) { delays.Observe(d.Seconds()) })
	}
	return openLimits(p.settings, p.log)
}

// unlisted returns the function that receives tenants that the limits do not list. It is
// nil for a limits file, which lists all tenants.
func (p *proxy) unlisted() func(tenant string) {
	if t, ok := p.limits.(*tableSource); ok {
		return t.lookup.Request
	}
	return nil
}

// observer returns the observer that counts decisions.
func (p *proxy) observer() limiter.Observer {
	o := &decisionObserver{Decisions: metrics.NewDecisions(p.metrics)}
	if c := p.cell(); c != nil {
		o.admitted = c.admitted
	}
	return o
}

// cell returns the cell of this proxy, or nil.
func (p *proxy) cell() *cell {
	if t, ok := p.limits.(*tableSource); ok {
		return t.cell
	}
	return nil
}

func (p *proxy) newSession(peer server.Peer) server.Session {
	return p.handler.NewSession(commands.Peer{ID: peer.ID, Addr: peer.Addr, Local: peer.LocalAddr, Kill: peer.Kill})
}

func (p *proxy) denyCacheSize() int {
	if p.cluster == nil {
		return 0
	}
	return p.settings.DenyCacheSize
}

// run serves until ctx ends, and then drains. The servers stop first; then the limiter
// returns its leased units and slots; then the proxy stops counting as an instance; then
// the connections to the store are closed.
func (p *proxy) run(ctx context.Context) error {
	without := !p.reached()
	if without {
		p.warnWithout(ctx)
	}
	p.printBanner()
	front := []func(context.Context) error{
		func(ctx context.Context) error {
			p.count.WaitFirst(ctx)
			return p.server.Run(ctx, p.front)
		},
		p.watchLimits,
		p.watchRollout,
	}
	if p.admin != nil {
		front = append(front, p.runAdmin)
	}
	if p.memory != nil {
		front = append(front, p.watchOverflow)
	}
	if p.cluster != nil {
		front = append(front, func(ctx context.Context) error { return p.watchStore(ctx, without) }, p.adviseCeiling)
	}
	stages := []func(context.Context) error{
		func(ctx context.Context) error { return runAll(ctx, front...) },
		p.limiter.Run,
		p.count.Run,
	}
	if p.cluster != nil {
		stages = append(stages, p.cluster.Run)
		defer func() { _ = p.cluster.Close() }()
	}
	err := runStages(ctx, stages...)
	p.log.Info("stopped")
	return err
}

// runStages runs all stages concurrently. When ctx ends, it cancels the first stage, and
// each other one when the stage before it has ended. When one fails, the stages before it
// are cancelled as well.
func runStages(ctx context.Context, stages ...func(context.Context) error) error {
	if len(stages) == 1 {
		return stages[0](ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	behind, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() {
		failed = runStages(behind, stages[1:]...)
		cancel()
	})
	err := stages[0](ctx)
	stop()
	wg.Wait()
	return errors.Join(err, failed)
}

// runAll runs the parts until all have ended. When one fails, it cancels the others.
func runAll(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() {
			if errs[i] = part(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// overflowPause is the interval at which an overflow of the memory store is logged.
const overflowPause = time.Minute

// watchOverflow logs when the memory store is full of live buckets.
func (p *proxy) watchOverflow(ctx context.Context) error {
	tick := time.NewTicker(overflowPause)
	defer tick.Stop()
	for before := int64(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if n := p.memory.Overflows(); n > before {
			p.log.Warn("the memory store is full: new buckets share one per limit; raise memory_buckets", "decisions", n-before, "buckets", p.memory.Len())
			before = n
		}
	}
}

// watchLimits loads the limits again when their file changes, and on SIGHUP.
func (p *proxy) watchLimits(ctx context.Context) error {
	if t, ok := p.limits.(*tableSource); ok {
		return t.run(ctx)
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	if p.settings.Limits == "" {
		<-ctx.Done()
		return nil
	}
	w := config.NewWatcher(p.settings.Limits, p.reloadLimits)
	w.Trigger() // in case the file has changed since it was first read
	return runAll(ctx, w.Run, func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-hup:
				w.Trigger()
			}
		}
	})
}

func (p *proxy) reloadLimits() {
	before := p.limits.Status()
	if err := p.limits.Reload(); err != nil {
		p.log.Error("failed to reload the limits, keeping the last good ones", "version", p.limits.Status().Version, "error", err)
		return
	}
	if st := p.limits.Status(); st.Version != before.Version || st.Trial != before.Trial || before.Error != "" {
		p.log.Info("limits reloaded", "version", st.Version, "source", st.Source, "trial", st.Trial)
	}
}

// printBanner prints the address of the proxy and a first command to type.
func (p *proxy) printBanner() {
	st := p.limits.Status()
	admin := "off"
	if p.admin != nil {
		admin = p.admin.Addr().String()
	}
	p.log.Info("listening", "addr", p.front.Addr().String(), "admin", admin, "store", p.storeKind(), "instances", p.settings.Instances.String(), "limits", st.Source, "version", st.Version)
	host, port, _ := net.SplitHostPort(p.front.Addr().String())
	fmt.Fprintf(p.env.stdout, `limitgate %s listens on %s, store %s. Ask it:

  redis-cli -h %s -p %s RL.CHECK acme "POST /v1/payments" 203.0.113.7 1

or without redis-cli:

  %s check --addr %s acme "POST /v1/payments" 203.0.113.7 1
`, version, p.front.Addr(), p.storeKind(), host, port, os.Args[0], p.front.Addr())
}

// limitsView exposes the limits source to the commands.
type limitsView struct {
	source limitsSource
	log    *slog.Logger
}

func (v limitsView) Reload() error { return v.source.Reload() }

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
