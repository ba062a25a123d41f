package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/appconfig"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/limit"
)

const (
	// gateTimeout bounds how long a start waits for AppConfig.
	gateTimeout = 5 * time.Second
	// vetoEvery is how often run checks for a veto to be written to the registry, and
	// vetoMost bounds the pause after a failed write.
	vetoEvery = time.Second
	vetoMost  = 30 * time.Second
)

// rolloutGate selects the revision of a table's limits that this proxy has as its canary.
type rolloutGate struct {
	source   *tableSource
	poller   *appconfig.Poller // nil without a gate: then there is no canary
	registry *dynamo.Registry  // stores vetoes
	log      *slog.Logger

	mu     sync.Mutex // guards the fields below
	gate   table.Gate
	vetoed int64  // the revision that this proxy or another one has vetoed
	why    string // the reason of the veto
	unsent veto   // a veto that is not in the registry yet
	broken int64  // the revision that failed to compile: it is not retried until the gate changes
	failed error  // the error of the compilation
	missed bool   // a revision did not compile with some of the parts; it may with all of them
	unread error  // the error of the last read of the gate
}

// veto is a revision that must not be tried, and the reason.
type veto struct {
	revision int64
	why      string
}

// openRolloutGate reads the gate of the settings. If AppConfig does not answer, there is
// no canary until it does.
func openRolloutGate(ctx context.Context, config aws.Config, s *config.Settings, t *tableSource, log *slog.Logger) (*rolloutGate, error) {
	g := &rolloutGate{source: t, log: log}
	if s.RolloutGate == "" {
		return g, nil
	}
	name, err := appconfig.ParseName(s.RolloutGate)
	if err != nil {
		return nil, err
	}
	g.registry = dynamo.NewRegistry(config, s.CellsTable)
	g.poller = appconfig.NewPoller(config, name, g.apply, g.fail)
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	g.poller.Poll(ctx)
	g.lookForVeto(ctx)
	return g, nil
}

// lookForVeto stops the canary of a revision that another proxy has vetoed. While no
// control plane runs, the gate may still name it. It needs no lock: nothing else uses g yet.
func (g *rolloutGate) lookForVeto(ctx context.Context) {
	if g.gate.Revision == 0 {
		return
	}
	why, vetoed, err := g.registry.VetoOf(ctx, g.gate.Revision)
	if err != nil {
		g.log.Warn("failed to look for a veto of the revision that the gate names", "revision", g.gate.Revision, "error", err)
	}
	if vetoed {
		g.vetoed, g.why = g.gate.Revision, why
	}
}

// apply applies a new state of the gate.
func (g *rolloutGate) apply(body []byte) {
	gate, err := table.ReadGate(body)
	if err != nil {
		g.fail(err)
		return
	}
	g.mu.Lock()
	changed := gate != g.gate
	g.gate, g.unread = gate, nil
	if changed {
		g.broken, g.failed = 0, nil
	}
	if gate.Revision != g.vetoed { // its number may be used again
		g.vetoed, g.why = 0, ""
	}
	g.mu.Unlock()
	if !changed || g.source.Catalog == nil { // at start there is no catalog yet
		return
	}
	g.log.Info("gate of the limits changed", "revision", gate.Revision, "percent", gate.Percent)
	if err := g.source.Recompile(); err != nil {
		g.fail(err)
	}
}

// fail records the error of reading the gate.
func (g *rolloutGate) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unread == nil || g.unread.Error() != err.Error() {
		g.log.Error("failed to read the gate of the limits, keeping its last state", "error", err)
	}
	g.unread = err
}

// try returns the set with the canary revision of the gate. If a revision does not
// compile with all the parts of a table, try returns set, and does not retry until the
// gate changes; otherwise each change of a tenant would repeat the failure. A revision
// that does not compile with some of the parts may lack another one, and is soon retried
// with all of them.
func (g *rolloutGate) try(set *limit.Set, all bool, try func(table.Gate) (*limit.Set, error)) *limit.Set {
	g.mu.Lock()
	gate := g.gate
	off := gate.Revision == 0 || gate.Revision == g.vetoed || gate.Revision == g.unsent.revision || gate.Revision == g.broken
	g.mu.Unlock()
	if off {
		return set
	}
	set, err := try(gate) // this takes a while
	g.mu.Lock()
	defer g.mu.Unlock()
	if all {
		g.missed = false
	}
	if err == nil {
		return set
	}
	if !all {
		g.missed = true
		return set
	}
	g.log.Error("failed to compile a canary revision of the limits", "revision", gate.Revision, "error", err)
	g.broken, g.failed = gate.Revision, err
	return set
}

// retry compiles all parts again if a revision did not compile with some of them.
func (g *rolloutGate) retry() {
	g.mu.Lock()
	missed := g.missed
	g.missed = false
	g.mu.Unlock()
	if !missed {
		return
	}
	if err := g.source.Recompile(); err != nil {
		g.log.Error("failed to compile the limits again", "error", err)
	}
}

// clearBroken forgets the revision that failed to compile, so that the next compilation
// of all parts retries it, and reports whether there was one.
func (g *rolloutGate) clearBroken() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	broken := g.broken != 0
	g.broken, g.failed = 0, nil
	return broken
}

// failure returns the error of the last compilation of the canary revision.
func (g *rolloutGate) failure() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed
}

// describe returns the current canary and its error.
func (g *rolloutGate) describe(set *limit.Set) (trial, failed string) {
	if next, share := set.Trial(); next != nil {
		trial = fmt.Sprintf("%s, on %s", next.Version, limit.DescribeShare(share))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.vetoed != 0 && g.vetoed == g.gate.Revision:
		failed = fmt.Sprintf("%s was taken back: %s", config.RevisionName(g.vetoed), g.why)
	case g.failed != nil:
		failed = g.failed.Error()
	case g.unread != nil:
		failed = g.unread.Error()
	}
	return trial, failed
}

// Threshold is the share of all requests that a revision may deny beyond the current
// limits.
func (t *tableSource) Threshold() float64 {
	t.rolloutGate.mu.Lock()
	defer t.rolloutGate.mu.Unlock()
	return t.rolloutGate.gate.Threshold / 100
}

// TakeBack ends the canary of a revision in this proxy. Run writes a veto, so that the
// control plane ends it everywhere.
func (t *tableSource) TakeBack(version, why string) error {
	next, _ := t.Set().Trial()
	if next == nil || version != "" && version != next.Version {
		return config.ErrNoTrial
	}
	revision, ok := config.RevisionNumber(next.Version)
	if !ok {
		return config.ErrNoTrial
	}
	t.rolloutGate.mu.Lock()
	t.rolloutGate.vetoed, t.rolloutGate.why, t.rolloutGate.unsent = revision, why, veto{revision, why}
	t.rolloutGate.mu.Unlock()
	return t.Recompile()
}

// run compiles revisions again that did not compile with some of the parts, and writes the
// veto of this proxy to the registry, until ctx ends.
func (g *rolloutGate) run(ctx context.Context) error {
	rest, next := vetoEvery, time.Time{}
	for run.Sleep(ctx, vetoEvery) {
		g.retry()
		if time.Now().Before(next) {
			continue
		}
		if g.reportVeto(ctx) {
			rest = vetoEvery
			continue
		}
		next, rest = time.Now().Add(rest), min(2*rest, vetoMost)
	}
	return nil
}

// reportVeto writes the veto of this proxy to the registry, unless it is there already.
// It returns whether the registry has it.
func (g *rolloutGate) reportVeto(ctx context.Context) (known bool) {
	g.mu.Lock()
	unsent := g.unsent
	g.mu.Unlock()
	if unsent.revision == 0 {
		return true
	}
	if err := g.registry.Veto(ctx, unsent.revision, unsent.why); err != nil {
		if ctx.Err() == nil {
			g.log.Error("failed to write the veto, other proxies still try the revision", "revision", unsent.revision, "error", err)
		}
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unsent == unsent {
		g.unsent = veto{}
	}
	return true
}

// Promote returns an error: promoting a revision takes write access to the table.
func (t *tableSource) Promote() error {
	return errors.New("the limits are in a table: say limitgate rollout promote")
}
