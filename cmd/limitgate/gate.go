package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/limitgate/limitgate/appconfig"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/dynamo"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/table"
)

// gateTimeout bounds how long a start waits for AppConfig, and a rollback for its veto.
const gateTimeout = 5 * time.Second

// gate says which revision of a table's limits this proxy tries.
type gate struct {
	source   *tableSource
	poller   *appconfig.Poller // nil without a gate: then nothing is tried
	registry *dynamo.Registry  // where a revision is vetoed, nil for nowhere
	log      *slog.Logger

	mu     sync.Mutex // guards what follows
	said   table.Gate
	held   int64  // the revision that was taken back here
	why    string // it was
	failed error  // why the revision is not tried
	unread error  // why the gate is not known
}

// openGate asks for the gate of the settings. Where nobody answers nothing is tried, until
// somebody does.
func openGate(ctx context.Context, config aws.Config, s *config.Settings, t *tableSource, log *slog.Logger) (*gate, error) {
	g := &gate{source: t, log: log}
	if s.RolloutGate == "" {
		return g, nil
	}
	name, err := appconfig.ParseName(s.RolloutGate)
	if err != nil {
		return nil, err
	}
	if s.CellsTable != "" {
		g.registry = dynamo.NewRegistry(config, s.CellsTable)
	}
	g.poller = appconfig.NewPoller(config, name, g.apply, g.fail)
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	g.poller.Poll(ctx)
	return g, nil
}

// apply takes what the gate says now.
func (g *gate) apply(body []byte) {
	said, err := table.ReadGate(body)
	if err != nil {
		g.fail(err)
		return
	}
	g.mu.Lock()
	changed := said != g.said
	g.said, g.unread = said, nil
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
func (g *gate) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unread == nil || g.unread.Error() != err.Error() {
		g.log.Error("the gate of the limits is not known, what it said last stays", "error", err)
	}
	g.unread = err
}

// try returns what a set becomes by the gate. What cannot be tried leaves it as it is.
func (g *gate) try(set *limit.Set, try func(table.Gate) (*limit.Set, error)) *limit.Set {
	g.mu.Lock()
	said, held := g.said, g.held
	g.mu.Unlock()
	var err error
	if said.Revision != 0 && said.Revision != held {
		set, err = try(said) // which takes a while
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed = err
	return set
}

// describe tells what is tried, and what is wrong with it.
func (g *gate) describe(set *limit.Set) (trial, failed string) {
	if next, share := set.Trial(); next != nil {
		trial = fmt.Sprintf("%s, on %s %% of the tenants", next.Version, strconv.FormatFloat(float64(share)/100, 'f', -1, 64))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.held != 0 && g.held == g.said.Revision:
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
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	return t.gate.said.Threshold / 100
}

// TakeBack ends the trial of a revision here, and asks the control plane to end it
// everywhere.
func (t *tableSource) TakeBack(version, why string) error {
	g := t.gate
	next, _ := t.Set().Trial()
	if next == nil || version != "" && version != next.Version {
		return config.ErrNoTrial
	}
	g.mu.Lock()
	g.held, g.why = g.said.Revision, why
	revision := g.held
	g.mu.Unlock()
	err := t.Recompile()
	if g.registry != nil {
		ctx, cancel := context.WithTimeout(context.Background(), gateTimeout)
		defer cancel()
		err = errors.Join(err, g.registry.Veto(ctx, revision, why))
	}
	return err
}

// Promote is for people with rights on the table.
func (t *tableSource) Promote() error {
	return errors.New("the limits are in a table: say limitgate rollout promote")
}
