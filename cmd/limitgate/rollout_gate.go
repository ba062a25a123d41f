package main

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
	"github.com/limitgate/limitgate/limit"
)

const (
	// gateTimeout bounds how long a start waits for AppConfig.
	gateTimeout = 5 * time.Second
	// vetoEvery is how often it is looked whether a revision was taken back, and vetoMost bounds
	// the pause after the control plane could not be told of one.
	vetoEvery = time.Second
	vetoMost  = 30 * time.Second
)

// rolloutGate says which revision of a table's limits this proxy tries.
type rolloutGate struct {
	source   *tableSource
	poller   *appconfig.Poller // nil without a gate: then nothing is tried
	registry *dynamo.Registry  // where a revision is vetoed
	log      *slog.Logger

	mu     sync.Mutex // guards what follows
	gate   table.Gate
	held   int64  // the revision that was taken back here
	why    string // it was
	veto   veto   // that the registry does not know of yet
	broken int64  // the revision that could not be compiled: it is not tried until the gate changes
	failed error  // why
	missed bool   // a revision could not be tried beside some of the parts: beside all it may be
	unread error  // why the gate is not known
}

// veto says that a revision must not be tried, and why.
type veto struct {
	revision int64
	why      string
}

// openRolloutGate asks for the gate of the settings. Where nobody answers nothing is tried, until
// somebody does.
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

// lookForVeto has a revision not be tried that another proxy has taken back: the gate may name it
// for as long as no control plane runs.
func (g *rolloutGate) lookForVeto(ctx context.Context) {
	if g.gate.Revision == 0 {
		return
	}
	why, vetoed, err := g.registry.VetoOf(ctx, g.gate.Revision)
	if err != nil {
		g.log.Warn("cannot look for a veto of the revision that the gate names", "revision", g.gate.Revision, "error", err)
	}
	if vetoed {
		g.held, g.why = g.gate.Revision, why
	}
}

// apply takes what the gate says now.
func (g *rolloutGate) apply(body []byte) {
	said, err := table.ReadGate(body)
	if err != nil {
		g.fail(err)
		return
	}
	g.mu.Lock()
	changed := said != g.gate
	g.gate, g.unread = said, nil
	if changed {
		g.broken, g.failed = 0, nil
	}
	if said.Revision != g.held { // its number may come again
		g.held, g.why = 0, ""
	}
	g.mu.Unlock()
	if !changed || g.source.Catalog == nil { // of a start
		return
	}
	g.log.Info("the gate of the limits has changed", "revision", said.Revision, "percent", said.Percent)
	if err := g.source.Recompile(); err != nil {
		g.fail(err)
	}
}

// fail notes why the gate is not known.
func (g *rolloutGate) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unread == nil || g.unread.Error() != err.Error() {
		g.log.Error("the gate of the limits is not known, what it said last stays", "error", err)
	}
	g.unread = err
}

// try returns what a set becomes by the gate. A revision that cannot be tried beside all the
// parts of a table leaves it as it is, and is not tried again until the gate changes: else
// each change of a tenant would find that out anew. What fails beside some of them may lack
// another, and is tried beside all soon.
func (g *rolloutGate) try(set *limit.Set, all bool, try func(table.Gate) (*limit.Set, error)) *limit.Set {
	g.mu.Lock()
	said := g.gate
	off := said.Revision == 0 || said.Revision == g.held || said.Revision == g.veto.revision || said.Revision == g.broken
	g.mu.Unlock()
	if off {
		return set
	}
	set, err := try(said) // which takes a while
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
	g.log.Error("a revision of the limits cannot be tried", "revision", said.Revision, "error", err)
	g.broken, g.failed = said.Revision, err
	return set
}

// retry has a revision tried beside all parts that could not be beside some.
func (g *rolloutGate) retry() {
	g.mu.Lock()
	missed := g.missed
	g.missed = false
	g.mu.Unlock()
	if !missed {
		return
	}
	if err := g.source.Recompile(); err != nil {
		g.log.Error("the limits could not be compiled anew", "error", err)
	}
}

// clearBroken has a revision that could not be tried be tried again when all is compiled, and reports
// whether there is one.
func (g *rolloutGate) clearBroken() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	broken := g.broken != 0
	g.broken, g.failed = 0, nil
	return broken
}

// describe tells what is tried, and what is wrong with it.
func (g *rolloutGate) describe(set *limit.Set) (trial, failed string) {
	if next, share := set.Trial(); next != nil {
		trial = fmt.Sprintf("%s, on %s", next.Version, limit.DescribeShare(share))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.held != 0 && g.held == g.gate.Revision:
		failed = fmt.Sprintf("%s was taken back: %s", config.RevisionName(g.held), g.why)
	case g.failed != nil:
		failed = g.failed.Error()
	case g.unread != nil:
		failed = g.unread.Error()
	}
	return trial, failed
}

// Threshold is by how much of all requests a revision may deny more.
func (t *tableSource) Threshold() float64 {
	t.rolloutGate.mu.Lock()
	defer t.rolloutGate.mu.Unlock()
	return t.rolloutGate.gate.Threshold / 100
}

// TakeBack ends the trial of a revision here. Run asks the control plane to end it
// everywhere.
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
	t.rolloutGate.held, t.rolloutGate.why, t.rolloutGate.veto = revision, why, veto{revision, why}
	t.rolloutGate.mu.Unlock()
	return t.Recompile()
}

// run looks after what is tried until ctx ends.
func (g *rolloutGate) run(ctx context.Context) error {
	rest, next := vetoEvery, time.Time{}
	for pause(ctx, vetoEvery) {
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

// reportVeto tells the control plane of a revision that was taken back, unless it knows. It reports
// whether it does.
func (g *rolloutGate) reportVeto(ctx context.Context) (known bool) {
	g.mu.Lock()
	untold := g.veto
	g.mu.Unlock()
	if untold.revision == 0 {
		return true
	}
	if err := g.registry.Veto(ctx, untold.revision, untold.why); err != nil {
		if ctx.Err() == nil {
			g.log.Error("other proxies still try what was taken back here", "revision", untold.revision, "error", err)
		}
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.veto == untold {
		g.veto = veto{}
	}
	return true
}

// Promote is for people with rights on the table.
func (t *tableSource) Promote() error {
	return errors.New("the limits are in a table: say limitgate rollout promote")
}
