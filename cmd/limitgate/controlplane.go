package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane"
	"github.com/limitgate/limitgate/controlplane/admission"
	"github.com/limitgate/limitgate/controlplane/appconfig"
	"github.com/limitgate/limitgate/controlplane/audit"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/adminserver"
	"github.com/limitgate/limitgate/internal/awsclient"
	"github.com/limitgate/limitgate/internal/proxy"
	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/metrics"
)

const controlPlaneAbout = `Carries changes of a table of limits to all proxies, until it is told to end.

Usage: limitgate controlplane --table TABLE --topic ARN --leases TABLE
           [--audit-bucket BUCKET] [--cells TABLE] [--rollout-gate CONFIGURATION]
           [--dead-letters URL] [--admin ADDRESS]

It reads the table's stream, and publishes each changed item to the topic that
the proxies are subscribed to. Several may run: they share the work by leases in
a table of their own, whose key is pk, and go on where another one ended. With
--audit-bucket each change is written down for limitgate audit. With --cells it
says which of the cells that are registered in that table share the limits, and
ends the trial of limits everywhere that a proxy has found to deny too much; with
--rollout-gate it closes the gate then, too. What was written
into the table by hand and is no item of limits goes to the queue of --dead-letters.
With --admin it serves /healthz and /metrics.

AWS is found as its other tools find it: by AWS_REGION, AWS_PROFILE,
AWS_ENDPOINT_URL and their like. It exits with 0 when it is told to end, 1 when it
cannot begin and 64 when the arguments are wrong.`

// planeOptions are the flags of a control plane.
type planeOptions struct {
	table, topic, leases, bucket, cells, gate, admin, poison string
}

const controlPlaneExample = "limitgate controlplane --table limits --topic arn:aws:sns:eu-central-1:123456789012:limits --leases leases"

func runControlPlane(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "controlplane", controlPlaneAbout, controlPlaneExample)
	var o planeOptions
	fs.StringVar(&o.table, "table", "", "`name` of the DynamoDB table")
	fs.StringVar(&o.topic, "topic", "", "`ARN` of the SNS topic")
	fs.StringVar(&o.bucket, "audit-bucket", "", "`name` of the S3 bucket, with Object Lock, in which each change is written down; empty writes none down")
	fs.StringVar(&o.leases, "leases", "", "`name` of the DynamoDB table for leases")
	fs.StringVar(&o.cells, "cells", "", "`name` of the DynamoDB table in which cells are registered; empty looks after none")
	fs.StringVar(&o.gate, "rollout-gate", "", "the `configuration` in AWS AppConfig that says which limits are tried: appconfig://APPLICATION/ENVIRONMENT/PROFILE")
	fs.StringVar(&o.poison, "dead-letters", "", "`URL` of the SQS queue for changes that are none of limits, with the reason; empty logs them")
	fs.StringVar(&o.admin, "admin", "", "`address` on which health and metrics are served; empty serves none")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if problem := o.problem(fs); problem != "" {
		fmt.Fprintf(env.stderr, "limitgate controlplane: %s\n", problem)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	log := slog.New(slog.NewTextHandler(env.stderr, &slog.HandlerOptions{ReplaceAttr: awsclient.ExplainAttr}))
	p, err := newPlane(ctx, o, log)
	if err == nil {
		err = p.run(ctx)
	}
	if err != nil {
		return fail(env, err)
	}
	log.Info("stopped")
	return exitOK
}

// problem returns what is wrong with the flags and what would be right, or "".
func (o *planeOptions) problem(fs *flag.FlagSet) string {
	if o.gate != "" && o.cells == "" {
		return "--rollout-gate needs --cells, the table in which proxies say that a revision denies too much"
	}
	if missing := missingFlags(fs, 0, "table", "topic", "leases"); missing != "" {
		return missing + ": " + controlPlaneExample
	}
	for _, of := range []struct{ flag, name, scheme string }{
		{"table", o.table, config.LimitsTablePrefix}, {"leases", o.leases, config.LimitsTablePrefix}, {"cells", o.cells, config.LimitsTablePrefix}, {"audit-bucket", o.bucket, bucketScheme},
	} {
		if name, ok := strings.CutPrefix(of.name, of.scheme); ok {
			return "--" + of.flag + " is the name alone: " + name
		}
		if of.flag != "table" && of.scheme == config.LimitsTablePrefix && of.name == o.table {
			return fmt.Sprintf("--%s is the table of limits, %s: name a table of its own", of.flag, o.table)
		}
	}
	if !strings.HasPrefix(o.topic, "arn:") {
		return fmt.Sprintf("--topic %q is not the ARN of an SNS topic: arn:aws:sns:REGION:ACCOUNT:%s", o.topic, o.topic)
	}
	if u, err := url.Parse(o.poison); o.poison != "" && (err != nil || u.Host == "") {
		return fmt.Sprintf("--dead-letters %q is not the URL of an SQS queue: https://sqs.REGION.amazonaws.com/ACCOUNT/NAME", o.poison)
	}
	if o.admin != "" {
		if err := checkAddr("admin", o.admin, "127.0.0.1:9180"); err != nil {
			return err.Error()
		}
	}
	return ""
}

// plane is a running control plane.
type plane struct {
	options planeOptions
	log     *slog.Logger
	aws     aws.Config
	stream  *dynamo.Stream
	limits  *dynamo.Table

	metrics *prometheus.Registry
	parts   []func(context.Context) error
	release []func(context.Context) error // release the locks, when all parts have ended
}

// newPlane builds a control plane from its flags.
func newPlane(ctx context.Context, o planeOptions, log *slog.Logger) (p *plane, err error) {
	p = &plane{options: o, log: log, metrics: prometheus.NewRegistry()}
	if p.aws, err = awsclient.Load(ctx); err != nil {
		return nil, err
	}
	p.limits = dynamo.NewTable(p.aws, o.table)
	p.stream, err = dynamo.OpenStream(ctx, p.aws, o.table)
	if errors.Is(err, dynamo.ErrNoStream) {
		if swapped := p.swapped(ctx); swapped != nil {
			return nil, swapped
		}
	}
	if err != nil {
		return nil, err
	}
	items, err := p.limits.Scan(ctx)
	if err != nil {
		return nil, err
	}
	if !hasLimits(items) {
		if err := p.swapped(ctx); err != nil {
			return nil, err
		}
	}
	if other := otherKey(items); other != "" {
		return nil, fmt.Errorf("--table: %s has no limits and other items, such as %s: name the table of limits, which is not that of --leases", o.table, config.Quote(other))
	}
	if err := dynamo.NewTopic(p.aws, o.topic).Check(ctx); err != nil {
		return nil, fmt.Errorf("--topic: %w", err)
	}
	p.addRelay(ctx)
	takeDigests := p.addDigests()
	p.addSweeper()
	if o.bucket != "" {
		if err := p.addAudit(ctx); err != nil {
			return nil, err
		}
	}
	if o.cells != "" {
		if _, err := dynamo.NewRegistry(p.aws, o.cells).Cells(ctx); err != nil {
			return nil, err
		}
		p.addCells()
		p.addAdmission()
		if err := p.addRollouts(); err != nil {
			return nil, err
		}
	}
	if o.admin != "" {
		if err := p.addAdmin(); err != nil {
			return nil, err
		}
	}
	if _, err := takeDigests(ctx); err != nil { // last, as nothing releases it if the start fails
		return nil, fmt.Errorf("--leases: %w", err)
	}
	log.Info("control plane started", "table", o.table, "topic", o.topic, "leases", o.leases, "audit", o.bucket, "cells", o.cells)
	return p, nil
}

// hasLimits reports whether the items of a table are those of limits, among others.
func hasLimits(items []table.Item) bool {
	return slices.ContainsFunc(items, func(i table.Item) bool { return table.IsKey(i.Key) })
}

// swappedTimeout bounds the search for limits in the table of --leases, which may name a large table.
const swappedTimeout = 5 * time.Second

// swapped returns an error if the table of --leases has limits and that of --table has none. It is nil, too, where one cannot be read.
func (p *plane) swapped(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, swappedTimeout)
	defer cancel()
	leases, err := dynamo.NewTable(p.aws, p.options.leases).Scan(ctx)
	if err == nil && hasLimits(leases) {
		limits, err := p.limits.Scan(ctx)
		if err == nil && !hasLimits(limits) {
			return fmt.Errorf("--table %s has no limits, and --leases %s has some: write --table %[2]s --leases %[1]s", table.Printable(p.options.table), table.Printable(p.options.leases))
		}
	}
	return nil
}

func (p *plane) addRelay(ctx context.Context) {
	changes := dynamo.NewChanges(p.stream, dynamo.NewShardLocks(p.aws, p.options.leases, "relay"), p.log)
	handler := &controlplane.Handler{Publish: dynamo.NewTopic(p.aws, p.options.topic), Items: p.limits, Log: p.log}
	if p.options.poison != "" {
		letters := dynamo.NewDeadLetters(p.aws, p.options.poison)
		if err := letters.Check(ctx); err != nil { // SQS says so, too, of one that it lets this role only send to
			p.log.Warn("the queue of --dead-letters does not exist, or may only be sent to", "error", err)
		}
		handler.DeadLetter = letters.Send
	}
	relay := controlplane.Relay{Stream: changes, Handler: handler, Log: p.log}
	p.parts, p.release = append(p.parts, relay.Run), append(p.release, changes.Release)
}

// addDigests adds the digests, and returns the function that takes their lock.
func (p *plane) addDigests() (take func(context.Context) (bool, error)) {
	alone, release := p.alone("digest")
	digests := controlplane.Digests{Table: p.limits, Publish: dynamo.NewTopic(p.aws, p.options.topic), HoldsLock: alone, Log: p.log}
	p.parts, p.release = append(p.parts, digests.Run), append(p.release, release)
	return alone
}

// alone returns two functions: one takes or renews the lock of a use that only one
// control plane has at a time, the other releases it.
func (p *plane) alone(use string) (take func(context.Context) (bool, error), release func(context.Context) error) {
	const one = "all"
	leases := dynamo.NewShardLocks(p.aws, p.options.leases, use)
	take = func(ctx context.Context) (bool, error) {
		until, _, err := leases.Take(ctx, one)
		return !until.IsZero(), err
	}
	return take, func(ctx context.Context) error { return leases.Release(ctx, one) }
}

func (p *plane) addSweeper() {
	sweeper := dynamo.NewSweeper(p.aws, p.options.topic)
	p.parts = append(p.parts, func(ctx context.Context) error {
		for run.Sleep(ctx, dynamo.SweepEvery/2+rand.N(dynamo.SweepEvery/2)) {
			swept, err := sweeper.Sweep(ctx, time.Now())
			if err != nil && ctx.Err() == nil {
				p.log.Error("failed to delete queues of dead proxies", "error", err)
			}
			if swept > 0 {
				p.log.Info("deleted queues of dead proxies", "queues", swept)
			}
		}
		return nil
	})
}

func (p *plane) addAudit(ctx context.Context) error {
	bucket := audit.NewBucket(p.aws, p.options.bucket)
	if err := bucket.Check(ctx); err != nil {
		return fmt.Errorf("--audit-bucket: %w", err)
	}
	changes := dynamo.NewChanges(p.stream, dynamo.NewShardLocks(p.aws, p.options.leases, "audit"), p.log)
	writer := audit.Writer{Records: changes, Archive: bucket, Table: p.options.table, Log: p.log}
	p.parts, p.release = append(p.parts, writer.Run), append(p.release, changes.Release)
	return nil
}

func (p *plane) addCells() {
	alone, release := p.alone("cells")
	cells := controlplane.Cells{Registry: dynamo.NewRegistry(p.aws, p.options.cells), Items: p.limits, HoldsLock: alone, Log: p.log}
	p.parts, p.release = append(p.parts, cells.Run), append(p.release, release)
}

func (p *plane) addAdmission() {
	a := &controlplane.Admission{Reports: dynamo.NewRegistry(p.aws, p.options.cells), Window: admission.Window, Log: p.log}
	metrics.RegisterAdmission(p.metrics, func() metrics.Admission {
		o := a.Latest(time.Now())
		return metrics.Admission{Cells: o.Cells, Buckets: o.Buckets, Max: o.Max, P99: o.P99, Level: int(o.Level)}
	})
	p.parts = append(p.parts, a.Run)
}

// adminGrace is how long requests in progress may take when the control plane ends.
const adminGrace = 2 * time.Second

// addAdmin serves health and metrics.
func (p *plane) addAdmin() error {
	listener, err := net.Listen("tcp", p.options.admin)
	if err != nil {
		return fmt.Errorf("listen for admin: %w%s", err, proxy.ListenAdvice(err, "--admin"))
	}
	p.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.metrics, promhttp.HandlerOpts{}))
	p.log.Info("serving metrics", "addr", listener.Addr().String())
	p.parts = append(p.parts, func(ctx context.Context) error { return adminserver.Serve(ctx, listener, mux, adminGrace) })
	return nil
}

func (p *plane) addRollouts() error {
	rollouts := controlplane.Rollouts{Vetoes: dynamo.NewRegistry(p.aws, p.options.cells), Items: p.limits, Log: p.log}
	if p.options.gate != "" {
		name, err := appconfig.ParseName(p.options.gate)
		if err != nil {
			return err
		}
		rollouts.Close = appconfig.NewDeployments(p.aws, name).Close
	}
	p.parts = append(p.parts, rollouts.Run)
	return nil
}

// run runs all parts until ctx ends, and then releases the locks for the next control
// plane.
func (p *plane) run(ctx context.Context) error {
	errs := []error{run.All(ctx, p.parts...)}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), awsclient.Timeout)
	defer cancel()
	for _, release := range p.release {
		errs = append(errs, release(ctx))
	}
	return errors.Join(errs...)
}
