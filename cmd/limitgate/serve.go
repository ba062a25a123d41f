package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/awsclient"
	"github.com/limitgate/limitgate/internal/logwriter"
	"github.com/limitgate/limitgate/internal/proxy"
	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/internal/sdnotify"
)

// gcPercent trades memory for speed: the live heap of a proxy is small, its garbage is
// not. GOGC in the environment takes precedence.
const gcPercent = 400

func runServe(ctx context.Context, env *environment, args []string) int {
	settings, origins, rest, err := config.Load(args, env.environ, config.ReadSettingsFile)
	if errors.Is(err, flag.ErrHelp) {
		if env.manual != nil {
			*env.manual = manual{about: config.About, flags: settingFlags()}
			return exitOK
		}
		config.Usage(env.stdout)
		return exitOK
	}
	if code, ok := checkLoaded(env, "serve", settings, origins, rest, err); !ok {
		return code
	}
	if name, given := ofEnvoy(env); given && settings.RLS.Listen == "" {
		settings.Warnings = append(settings.Warnings, name+" is set, a variable of envoyproxy/ratelimit, which limitgate envoy reads, and limitgate serve does not")
	}
	return serve(ctx, env, settings)
}

// ofEnvoy returns a variable by which a deployment of envoyproxy/ratelimit is known.
func ofEnvoy(env *environment) (name string, given bool) {
	for _, name := range []string{"RUNTIME_ROOT", "RUNTIME_SUBDIRECTORY", "CONFIG_GRPC_XDS_SERVER_URL"} {
		if env.lookup(name) != "" {
			return name, true
		}
	}
	return "", false
}

// checkLoaded prints the mistakes in the settings of a command, or these if that is asked for. Ok
// reports that the command goes on; otherwise it ends with the code.
func checkLoaded(env *environment, command string, settings *config.Settings, origins []config.Origin, rest []string, err error) (code int, ok bool) {
	switch {
	case len(rest) > 0:
		fmt.Fprintf(env.stderr, "limitgate %s: %s is not a flag%s; limitgate %[1]s --help lists them\n", command, config.Quote(rest[0]), missingFlag(rest[0]))
		return exitUsage, false
	case err != nil:
		for mistake := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintf(env.stderr, "limitgate %s: %s\n", command, mistake)
		}
		return exitUsage, false
	case settings.PrintConfig:
		for _, w := range settings.Warnings {
			fmt.Fprintf(env.stderr, "limitgate %s: %s\n", command, w)
		}
		config.PrintConfig(env.stdout, origins, settings.JSON)
		return exitOK, false
	}
	return exitOK, true
}

// storeClosed precedes the error of a store that cannot be opened.
const storeClosed = "open store: "

// signalsPause is the time in which further signals count as the first one: timeout, and a terminal with make,
// send a signal to the process and once more to its group.
const signalsPause = 500 * time.Millisecond

// serve runs a proxy until a signal ends it, and returns the exit code.
func serve(ctx context.Context, env *environment, settings *config.Settings) int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer time.AfterFunc(signalsPause, stop) // until the process has ended
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	if settings.EMF.Sink == config.EMFStdout {
		signal.Ignore(syscall.SIGPIPE) // decisions go on without the reader of metrics
	}
	log, level, endLog := startLog(ctx, env, settings)
	for _, w := range settings.Warnings {
		log.Warn("warning about the settings", "text", w)
	}
	manager := sdnotify.New(env.lookup, os.Getpid())
	notify := func(state string) {
		if err := manager.Notify(state); err != nil {
			log.Warn("failed to notify the service manager", "state", state, "error", err)
		}
	}
	p, err := proxy.New(ctx, proxy.Options{
		Settings: settings, Log: log, LogLevel: level, Version: version, Stdout: env.stdout, Reload: hup,
		Ready: func() { notify(sdnotify.Ready) },
	})
	if err == nil {
		if settings.EMF.Sink != config.EMFStdout { // of which every line is metrics
			printBanner(env, p, settings)
		}
		// The first signal drains. The handler is gone after the pause, so a second signal ends
		// the process then.
		ending := func(ctx context.Context) error {
			<-ctx.Done()
			time.AfterFunc(signalsPause, stop)
			notify(sdnotify.Stopping)
			return nil
		}
		err = run.All(ctx, ending, func(ctx context.Context) error { return run.Stages(ctx, p.Run, manager.Run) })
	}
	endLog()
	if err != nil && strings.HasPrefix(err.Error(), storeClosed) {
		// A limitgate refuses the first command of a store as a Redis without that command does.
		if other := checkNoLimitgate(ctx, slices.Concat(settings.Redis.Addrs, settings.RedisSentinel.Nodes.Addrs)); other != nil {
			err = errors.New(storeClosed + other.Error())
		}
	}
	if err != nil {
		return fail(env, &namedError{err, settings.Named(err.Error())})
	}
	return exitOK
}

// namedError is an error with the settings as the user named them.
type namedError struct {
	error
	text string
}

func (e *namedError) Error() string { return e.text }

func (e *namedError) Unwrap() error { return e.error }

// missingFlag returns the flag for an argument that looks like a limits file, a table of limits, an address of the store or
// the value of a switch.
func missingFlag(arg string) string {
	if ext := filepath.Ext(arg); ext == ".yaml" || ext == ".yml" || ext == ".json" || isTable(arg) {
		return "; write --limits in front of it"
	}
	if _, port, err := net.SplitHostPort(arg); err == nil && port != "" {
		return "; nodes are one list with commas: --redis HOST:PORT,HOST:PORT"
	}
	if _, err := time.ParseDuration("1" + arg); err == nil && (arg[0] < '0' || arg[0] > '9') {
		return ": a time is a number and a unit without a blank, such as 10" + arg
	}
	if on, known := switchWords[strings.ToLower(arg)]; known {
		return fmt.Sprintf(": a flag that is a switch has its value behind =, such as --pprof=%t, and is on without one", on)
	}
	return ""
}

// switchWords are the words for on and off.
var switchWords = map[string]bool{"true": true, "yes": true, "on": true, "1": true, "false": false, "no": false, "off": false, "0": false}

// startLog returns the logger of the settings, its level, and a function that ends it: lines that follow
// are lost.
func startLog(ctx context.Context, env *environment, s *config.Settings) (log *slog.Logger, level *slog.LevelVar, end func()) {
	level = new(slog.LevelVar)
	level.Set(s.LogLevel)
	out, opts := logwriter.New(env.stderr), &slog.HandlerOptions{Level: level, ReplaceAttr: awsclient.ExplainAttr}
	log = slog.New(slog.NewTextHandler(out, opts))
	if s.LogFormat == "json" {
		opts.ReplaceAttr = logwriter.DurationText(opts.ReplaceAttr)
		log = slog.New(slog.NewJSONHandler(out, opts))
	}
	out.OnOmitted = func(lines int64) {
		log.Warn("lines of the log were omitted: its reader is slower than they are", "lines", lines)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { _ = out.Run(ctx) }) // it returns no error
	return log, level, func() {
		cancel()
		running.Wait()
	}
}

// printBanner prints the address of the proxy and a first command to type.
func printBanner(env *environment, p *proxy.Proxy, s *config.Settings) {
	if s.EnvoyAlone() {
		printEnvoyBanner(env, p)
		return
	}
	host, port, _ := net.SplitHostPort(p.Addr().String())
	flags := ""
	if s.TLSCert != "" {
		flags = " --tls --cacert FILE"
	}
	if s.NeedsAuth() {
		flags += " --user NAME --askpass"
	}
	if flags != "" {
		fmt.Fprintf(env.stdout, "limitgate %s listens on %s, store %s. Ask it with redis-cli%s -h %s -p %s\n", version, p.Addr(), p.StoreKind(), flags, host, port)
		return
	}
	tenant, op := p.Limits().Example("acme", "POST /v1/payments")
	fmt.Fprintf(env.stdout, `limitgate %s listens on %s, store %s. Ask it:

  redis-cli -h %s -p %s RL.CHECK %s "%s" 203.0.113.7 1

or without redis-cli:

  %[8]s check --addr %[2]s %[6]s "%[7]s" 203.0.113.7 1
`, version, p.Addr(), p.StoreKind(), host, port, tenant, op, os.Args[0])
}

// printEnvoyBanner prints the addresses of Envoy's rate limit service and, if it answers JSON, a first request.
func printEnvoyBanner(env *environment, p *proxy.Proxy) {
	front, web := p.RLSAddrs()
	fmt.Fprintf(env.stdout, "limitgate %s answers Envoy's rate limit service at %s, and Redis clients at %s, store %s.\n", version, front, p.Addr(), p.StoreKind())
	if web != "" {
		fmt.Fprintf(env.stdout, `Ask it about an entry of your limits:

  curl http://%s/json -d '{"domain": "DOMAIN", "descriptors": [{"entries": [{"key": "KEY", "value": "VALUE"}]}]}'
`, ownAddress(web))
	}
}
