package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// limitsSource supplies the limits.
type limitsSource interface {
	Set() *limit.Set
	OnChange(apply func(*limit.Set))
	Reload() error
	// LogsChanges reports whether the source logs the changes of its limits itself.
	LogsChanges() bool
	Status() config.LimitsStatus
	// Threshold is the share of all requests, 0 to 1, that canary limits may deny beyond
	// the denials of the current limits.
	Threshold() float64
	// TakeBack ends the canary of limits of a version, or of any if version is empty.
	TakeBack(version, why string) error
	// Promote applies canary limits to all tenants.
	Promote() error
	// Cell returns the cell of this proxy, or nil.
	Cell() *cell
	// ActiveCells returns how many cells share the limits, 0 if this proxy is in none.
	ActiveCells() int
	// CellShare returns this cell's part of each limit, 0 to 1; 0 if this proxy is in none.
	CellShare() float64
	// Unlisted returns the function that receives tenants that the limits do not list. It
	// is nil if they list all tenants.
	Unlisted() func(tenant string)
	RegisterMetrics(r *prometheus.Registry)
	// Run keeps the limits up to date until ctx ends, and then closes the source.
	Run(ctx context.Context) error
	// Close releases the source if Run is not called.
	Close()
}

// reload loads the limits again, and logs the result. By is the cause. A client that asks for
// it gets the error as a reply: clients must not be able to fill the log.
func reload(source limitsSource, by string, log *slog.Logger) error {
	before, set := source.Status(), source.Set()
	err := source.Reload()
	switch st := source.Status(); {
	case err != nil && by == byClient:
	case err != nil:
		log.Error("failed to reload the limits, keeping the last good ones", "by", by, "version", st.Version, "error", err)
	case before.Error == "" && source.LogsChanges():
	case st.Version != before.Version || st.Trial != before.Trial || before.Error != "":
		logReload(log, before.Error, set, source.Set(), describeReload(by, st.Version, st.Source, st.Trial)...)
	case by == bySignal:
		log.Info("limits are unchanged", "by", by, "version", st.Version)
	}
	return err
}

// describeReload returns the attributes of the line about a reload. Trial describes limits on trial, or is "".
func describeReload(by, version, source, trial string) []any {
	attrs := []any{"by", by, "version", version, "source", source}
	if trial != "" {
		attrs = append(attrs, "trial", trial)
	}
	return attrs
}

// logReload logs the changes from one set to the next. Failed is the error before. The line is a warning if there are
// fewer plans, or more than a tenth of the enforced limits or tenants is gone: the file may have been cut off.
func logReload(log *slog.Logger, failed string, before, after *limit.Set, attrs ...any) {
	changes := limit.Changes(before, after)
	if len(changes) == 0 && failed != "" {
		changes = []string{"none, and the limits have no error any more"}
	}
	attrs = append(attrs, "changes", strings.Join(changes, "; "))
	lost := lostParts(before, after)
	if lost == "" {
		log.Info(reloaded, attrs...)
		return
	}
	log.Warn(reloaded, append(attrs, "fewer", lost, "advice", "see whether the file is whole")...)
}

// lostParts describes the parts of which a set has fewer than the one before, or a set on trial if that is new. It
// returns "" if there are none but a few limits and tenants.
func lostParts(before, after *limit.Set) string {
	was, _ := before.Trial()
	if trial, _ := after.Trial(); trial != nil && (was == nil || was.Version != trial.Version) {
		after = trial
	}
	var lost []string
	for _, part := range []struct {
		name            string
		was, is, allows int
	}{
		{"enforced limits", enforced(before), enforced(after), enforced(before) / 10},
		{"plans", before.Plans(), after.Plans(), 0},
		{"tenants", before.Tenants(), after.Tenants(), before.Tenants() / 10},
	} {
		if part.was-part.is > part.allows {
			lost = append(lost, fmt.Sprintf("%d of %d %s", part.was-part.is, part.was, part.name))
		}
	}
	return strings.Join(lost, ", ")
}

// enforced returns the number of limits that can deny: one in shadow mode ends without harm.
func enforced(set *limit.Set) (n int) {
	for _, l := range set.Limits {
		if l.Mode == limit.ModeEnforce {
			n++
		}
	}
	return n
}

// reloaded is the line about limits that came into use.
const reloaded = "limits reloaded"

// The causes of a reload.
const (
	byTableChange = "change of the table"
	byFileChange  = "change of the file"
	bySignal      = "SIGHUP"
	byClient      = "RL.CONFIG RELOAD"
)

// compileOptions returns the options of the settings that limits are checked against.
func compileOptions(s *config.Settings) limit.CompileOptions {
	return limit.CompileOptions{Prefixes: limit.Prefixes{IPv4: s.PrivacyIPv4Prefix, IPv6: s.PrivacyIPv6Prefix}, IPMaxTTL: s.PrivacyIPMaxTTL.Microseconds(), IPSecret: s.PrivacyIPSecretFile != ""}
}
