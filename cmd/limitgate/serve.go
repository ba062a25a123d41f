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
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/examples"
)

// gcPercent trades memory for speed: the live heap of a proxy is small, its garbage is
// not. GOGC in the environment takes precedence.
const gcPercent = 400

func runServe(ctx context.Context, env *environment, args []string) int {
	settings, origins, rest, err := config.Load(args, env.environ, config.ReadSettingsFile)
	switch {
	case errors.Is(err, flag.ErrHelp):
		config.Usage(env.stdout)
		return exitOK
	case err != nil:
		for mistake := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintf(env.stderr, "limitgate serve: %s\n", mistake)
		}
		return exitUsage
	case len(rest) > 0:
		fmt.Fprintf(env.stderr, "limitgate serve: %.64q is not a flag; limitgate serve --help lists them\n", rest[0])
		return exitUsage
	}
	if settings.PrintConfig {
		config.PrintConfig(env.stdout, origins, settings.JSON)
		return exitOK
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	p, err := newProxy(ctx, env, settings)
	if err != nil {
		return fail(env, err)
	}
	// The first signal drains. The handler is then gone, so a second signal ends the
	// process.
	context.AfterFunc(ctx, stop)
	if err := p.run(ctx); err != nil {
		return fail(env, err)
	}
	return exitOK
}

// newLog returns the logger of the settings.
func newLog(env *environment, s *config.Settings) *slog.Logger {
	opts := &slog.HandlerOptions{Level: s.LogLevel}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(env.stderr, opts))
	}
	return slog.New(slog.NewTextHandler(env.stderr, opts))
}

// openLimits loads the limits file of the settings, or the sample.
func openLimits(s *config.Settings, log *slog.Logger) (*config.LimitsSource, error) {
	source, warnings, err := config.OpenLimits(s.Limits, examples.Limits, compileOptions(s))
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		if w.Redis && len(s.Redis) == 0 {
			continue
		}
		log.Warn("warning about the limits file", "line", w.Line, "field", w.Field, "text", w.Text)
	}
	source.Canary(s.LimitsCanary, s.CanaryThreshold)
	return source, nil
}

// listen opens both listeners before anything else starts, so that a port in use ends the
// program with a clear error.
func listen(s *config.Settings) (front, admin net.Listener, err error) {
	if front, err = net.Listen("tcp", s.Listen); err != nil {
		return nil, nil, fmt.Errorf("listen for clients: %w", err)
	}
	if s.Admin == "" {
		return front, nil, nil
	}
	if admin, err = net.Listen("tcp", s.Admin); err != nil {
		_ = front.Close()
		return nil, nil, fmt.Errorf("listen for admin: %w", err)
	}
	return front, admin, nil
}
