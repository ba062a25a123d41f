package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/term"

	"github.com/limitgate/limitgate/cluster/doctor"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/proxy"
)

const doctorAbout = `Says what a Redis or Redis Cluster can do, how limitgate will use it, and what
should be mended.

Usage: limitgate doctor [flags] --redis HOST:PORT[,HOST:PORT...]

It probes as the proxy does when it connects, and asks each master for 100
PINGs and 1,600 decisions on keys of its own, lg:probe:*, which it removes, and
which expire within seconds in any case. It needs no CONFIG and no DEBUG, and no
right that the proxy does not need.

With --measure it loads the first master for two seconds with decisions on such
keys, reads the processor time that they took from INFO, and writes a file for
limitgate plan --measured. The load of other clients counts in: choose a quiet time.

It prints its findings for people, or with --json for machines, and exits with
0 when limitgate can use the store, with warnings or without, with 1 when
something fails and with 64 when the arguments are wrong.`

// noAddress returns the error of doctor without the address of a store.
func noAddress(env *environment) error {
	if env.lookup("LIMITGATE_REDIS") != "" {
		return errors.New(`an address is needed: doctor reads no LIMITGATE_REDIS: limitgate doctor --redis "$LIMITGATE_REDIS"`)
	}
	return errors.New("an address is needed: for example limitgate doctor --redis 127.0.0.1:6379")
}

func runDoctor(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "doctor", doctorAbout, "limitgate doctor --redis 10.0.0.1:6379,10.0.0.2:6379")
	var settings config.Settings
	checkRedis := config.RedisFlags(fs, &settings)
	fs.Lookup("redis").Usage = "nodes of the Redis Cluster, or the one Redis, to examine"
	asJSON := fs.Bool("json", false, "print the report as JSON")
	timeout := fs.Duration("timeout", 10*time.Second, "how long all of it may take")
	decision := fs.Duration("decision-timeout", 5*time.Millisecond, "the one that serve is given: round trips are judged by it")
	limits := fs.String("limits", "", "the `file` that serve is given, to say which --backstop-total-rate would fit")
	measure := fs.String("measure", "", "write the processor time of a call into this `file`, after a load of two seconds on one master")
	var ceiling ceilingFlags
	ceiling.define(fs)
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	for _, w := range append(settings.Warnings, config.PatienceWarnings(*decision)...) {
		fmt.Fprintf(env.stderr, "limitgate doctor: %s\n", w)
	}
	err := checkRedis()
	switch {
	case err != nil:
	case fs.NArg() > 0:
		err = fmt.Errorf("%s is not a flag: name the nodes by --redis %s", config.Quote(fs.Arg(0)), strings.Join(fs.Args(), ","))
	case !settings.UsesRedis():
		err = noAddress(env)
	case *timeout <= 0 || *decision <= 0:
		err = fmt.Errorf("--timeout and --decision-timeout must be above zero")
	default:
		err = ceiling.check()
	}
	if err != nil {
		fmt.Fprintf(env.stderr, "limitgate doctor: %s; limitgate doctor --help says more\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	report, err := inspectStore(ctx, &settings, doctor.Options{DecisionTimeout: *decision, MeasureCPU: *measure != ""})
	if err != nil {
		return fail(env, err)
	}
	if err := ceiling.find(env, report, *limits); err != nil {
		return fail(env, err)
	}
	if err := writeMeasured(report, *measure, settings.UsesRedisTLS(), time.Now()); err != nil {
		return fail(env, err)
	}
	return printReport(env, report, *asJSON)
}

// inspectStore inspects the store of the settings. It returns an error if that is a limitgate.
func inspectStore(ctx context.Context, settings *config.Settings, opts doctor.Options) (*doctor.Report, error) {
	client, err := proxy.NewRedisClient(ctx, settings, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	opts.Store = client.Options
	report, err := doctor.Inspect(ctx, opts)
	if err != nil {
		return nil, err
	}
	if report.Verdict == doctor.SeverityFail {
		if err := checkNoLimitgate(ctx, client.Options.Addrs); err != nil {
			return nil, fmt.Errorf("doctor: %w", err)
		}
	}
	for i := range report.Findings {
		report.Findings[i].Text = settings.Named(report.Findings[i].Text)
	}
	return report, nil
}

// printReport prints a report, and returns the exit code.
func printReport(env *environment, report *doctor.Report, asJSON bool) int {
	var err error
	if asJSON {
		err = writeJSON(env.stdout, report)
	} else {
		err = writeReport(env.stdout, report, env.coloured())
	}
	if err != nil {
		return fail(env, fmt.Errorf("print report: %w", err))
	}
	if report.Verdict == doctor.SeverityFail {
		return exitError
	}
	return exitOK
}

// checkNoLimitgate returns an error if an address of --redis is that of a limitgate.
func checkNoLimitgate(ctx context.Context, addrs []string) error {
	for _, addr := range addrs {
		if isLimitgate(ctx, addr) {
			return fmt.Errorf("%s is a limitgate, not a Redis: name the nodes that its own --redis names", addr)
		}
	}
	return nil
}

// isLimitgate reports whether a limitgate answers at addr.
func isLimitgate(ctx context.Context, addr string) bool {
	client := redis.NewClient(clientOptions(addr, time.Second))
	defer func() { _ = client.Close() }()
	info, err := client.Info(ctx, "server").Result()
	if redis.HasErrorPrefix(err, "NOAUTH") {
		// A Redis answers that it does not know the command, before it asks for a password.
		return redis.HasErrorPrefix(client.Do(ctx, "RL.HELP").Err(), "NOAUTH")
	}
	return err == nil && strings.Contains(info, "limitgate_version:")
}

// coloured reports whether standard output is a terminal that is not dumb, and NO_COLOR
// is not set.
func (env *environment) coloured() bool {
	out, isFile := env.stdout.(*os.File)
	return isFile && term.IsTerminal(int(out.Fd())) &&
		!slices.ContainsFunc(env.environ, func(v string) bool {
			return v == "TERM=dumb" || strings.HasPrefix(v, "NO_COLOR=") && v != "NO_COLOR="
		})
}
