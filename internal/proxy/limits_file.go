package proxy

import (
	"cmp"
	"context"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/examples"
	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/limit"
)

// fileSource supplies the limits of a file, or the built-in sample.
type fileSource struct {
	*config.LimitsSource
	settings *config.Settings
	log      *slog.Logger
	reload   <-chan os.Signal
}

// openFile loads the limits file of the settings, or the sample.
func openFile(s *config.Settings, log *slog.Logger, reload <-chan os.Signal) (*fileSource, error) {
	source, warnings, err := config.OpenLimits(s.Limits, examples.Limits, compileOptions(s))
	if err != nil {
		return nil, err
	}
	if s.Updates != "" || s.LimitsSnapshot != "" {
		log.Warn("--updates and --limits-snapshot have no effect without limits of a table: set --limits dynamodb://TABLE", "limits", cmp.Or(s.Limits, "built-in sample"))
	}
	if s.Limits == "" && s.UsesRedis() && !s.EnvoyAlone() {
		log.Warn("no limits are set: every request is admitted or denied by the built-in sample of limits", "default_plan", source.Set().Plan(""),
			"advice", "set --limits FILE or --limits dynamodb://TABLE; RL.LIMITS lists the limits of the sample")
	}
	f := &fileSource{source, s, log, reload}
	f.logWarnings(warnings)
	source.OnWarnings(f.logWarnings)
	source.Canary(s.LimitsCanary, s.CanaryThreshold)
	return f, nil
}

// mostWarnings bounds the lines about one file: more hide what else the log has.
const mostWarnings = 20

// logWarnings logs warnings about the limits.
func (f *fileSource) logWarnings(warnings []limit.Problem) {
	s, logged := f.settings, 0
	for _, w := range warnings {
		if w.Note || w.Redis && !s.UsesRedis() || s.EnvoyAlone() {
			continue
		}
		if logged++; logged > mostWarnings {
			continue
		}
		switch {
		case w.Redis && s.Limits == "":
			f.log.Info("note about the built-in sample of limits", "field", w.Field, "text", w.Text)
		case w.Redis: // it may well have its AOF
			f.log.Info("note about the limits file", "line", w.Line, "field", w.Field, "text", w.Text, "advice", "limitgate doctor --redis ADDRESS says whether this Redis keeps its counters")
		case s.Limits == "":
			f.log.Warn("warning about the built-in sample of limits", "field", w.Field, "text", w.Text)
		default:
			f.log.Warn("warning about the limits file", "line", w.Line, "field", w.Field, "text", w.Text)
		}
	}
	if logged > mostWarnings {
		f.log.Warn("further warnings about the limits file", "left_out", logged-mostWarnings, "advice", "limitgate limits lint FILE has all")
	}
}

// LogsChanges returns false: each change is a reload.
func (f *fileSource) LogsChanges() bool { return false }

// Cell returns nil: only a table has cells.
func (f *fileSource) Cell() *cell { return nil }

// ActiveCells returns 0.
func (f *fileSource) ActiveCells() int { return 0 }

// CellShare returns 0.
func (f *fileSource) CellShare() float64 { return 0 }

// Unlisted returns nil: a file lists all tenants.
func (f *fileSource) Unlisted() func(tenant string) { return nil }

// RegisterMetrics registers nothing.
func (f *fileSource) RegisterMetrics(*prometheus.Registry) {}

// Close releases nothing.
func (f *fileSource) Close() {}

// Run loads the limits again when their file changes, and on each signal.
func (f *fileSource) Run(ctx context.Context) error {
	if f.settings.Limits == "" {
		<-ctx.Done()
		return nil
	}
	w := config.NewWatcher(f.settings.Limits, func() { _ = reload(f, byFileChange, f.log) })
	w.Trigger() // in case the file has changed since it was first read
	return run.All(ctx, w.Run, func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-f.reload:
				_ = reload(f, bySignal, f.log)
			}
		}
	})
}
