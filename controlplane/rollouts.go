package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/run"
)

const (
	// rolloutsEvery is how often vetoes are read.
	rolloutsEvery = 2 * time.Second
	// closeMost bounds the pause before another attempt to close a gate: each attempt
	// leaves a version of the configuration behind.
	closeMost = 5 * time.Minute
)

// Vetoes reads the vetoes of proxies: the revisions that deny too much, and why.
type Vetoes interface {
	Vetoes(ctx context.Context) (map[int64]string, error)
	// ForgetVeto deletes the veto of a revision.
	ForgetVeto(ctx context.Context, revision int64) error
}

// Rollouts ends the canary of a revision everywhere after a veto by one proxy. It
// replaces the item of the revision by a tombstone, which proxies receive like any
// other item, and closes the gate.
type Rollouts struct {
	Vetoes Vetoes
	Items  Items
	// Close deploys a gate without a revision; nil if there is no gate.
	Close func(ctx context.Context, gate []byte, why string) error
	Log   *slog.Logger

	open      int64         // the revision that was ended, while the gate may still name it
	pause     time.Duration // after the latest attempt to close the gate, which failed
	notBefore time.Time     // the time of the next attempt
}

// Run reads vetoes until ctx ends.
func (r *Rollouts) Run(ctx context.Context) error {
	var failed failures
	for ctx.Err() == nil {
		err := r.Update(ctx, time.Now())
		if n := failed.due(err); n > 0 && ctx.Err() == nil {
			r.Log.Error("failed to end vetoed revisions, retrying", "error", err, "failures", n)
		}
		run.Sleep(ctx, rolloutsEvery)
	}
	return nil
}

// Update ends the canaries of all vetoed revisions that exist.
func (r *Rollouts) Update(ctx context.Context, now time.Time) error {
	vetoes, err := r.Vetoes.Vetoes(ctx)
	if err != nil {
		return fmt.Errorf("read vetoes: %w", err)
	}
	var errs []error
	for revision, why := range vetoes {
		errs = append(errs, r.end(ctx, revision, why, now))
	}
	return errors.Join(errs...)
}

// end ends the canary of a revision, unless that is done.
func (r *Rollouts) end(ctx context.Context, revision int64, why string, now time.Time) error {
	key := table.RevisionKey(revision)
	it, ok, err := r.Items.Get(ctx, key)
	switch {
	case err != nil:
		return err
	case !ok: // its tombstone has expired, and the number may be used again
		return r.Vetoes.ForgetVeto(ctx, revision)
	case it.Deleted:
		return r.close(ctx, revision, why, now)
	}
	if _, err := r.Items.Put(ctx, table.Item{Key: key, Version: it.Version, Actor: Actor, At: now.UTC(), Deleted: true}); err != nil {
		return fmt.Errorf("end revision %d: %w", revision, err)
	}
	r.Log.Error("ended vetoed revision", "revision", revision, "why", why)
	r.open, r.pause, r.notBefore = revision, 0, now
	return r.close(ctx, revision, why, now)
}

// close closes the gate, if that is still to be done for a revision. It may take a
// while, because proxies ignore a gate whose revision is deleted. If there is a later
// revision, its writer updates the gate.
func (r *Rollouts) close(ctx context.Context, revision int64, why string, now time.Time) error {
	if r.Close == nil || r.open != revision || now.Before(r.notBefore) {
		return nil
	}
	if _, later, err := r.Items.Get(ctx, table.RevisionKey(revision+1)); err != nil {
		return fmt.Errorf("close gate: %w", err)
	} else if later {
		r.open = 0
		return nil
	}
	closed, err := json.Marshal(table.Gate{})
	if err == nil {
		err = r.Close(ctx, closed, why)
	}
	if err != nil {
		r.pause = min(max(2*r.pause, rolloutsEvery), closeMost)
		r.notBefore = now.Add(r.pause)
		return fmt.Errorf("close gate: %w", err)
	}
	r.open = 0
	return nil
}
