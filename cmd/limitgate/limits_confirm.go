package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane"
	"github.com/limitgate/limitgate/controlplane/audit"
	"github.com/limitgate/limitgate/controlplane/table"
)

func runConfirm(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits confirm", limitsAbout, "limitgate limits confirm --bucket limits-audit dynamodb://limits TENANT#acme")
	bucket := fs.String("bucket", "", "`name` of the S3 bucket of the audit")
	ttl := ipMaxTTLFlag(fs)
	yes := fs.Bool("yes", false, "write without asking")
	actor := fs.String("actor", "", "`name` of who confirms this; the caller that AWS knows unless given")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if fs.NArg() != 2 || !isTable(fs.Arg(0)) || *bucket == "" {
		fmt.Fprintln(env.stderr, "limitgate limits confirm: --bucket, a table and an item are needed: limitgate limits confirm --bucket limits-audit dynamodb://limits TENANT#acme")
		return exitUsage
	}
	key := keyOfArg(fs.Arg(1))
	entries, err := history(ctx, *bucket, key)
	if err != nil {
		return fail(env, err)
	}
	t, err := openTableArgs(ctx, env, "", fs.Arg(0), *ttl)
	if err != nil {
		return fail(env, err)
	}
	e, err := putBack(entries, t.items[key])
	if err != nil {
		return fail(env, err)
	}
	c, err := t.confirming(e)
	if err != nil {
		return fail(env, err)
	}
	fmt.Fprintf(env.stdout, "written by hand, found at %s, and put back as version %d\n", e.At.Format(time.RFC3339), t.items[key].Version)
	return t.apply(ctx, env, []table.Change{c}, pushOptions{yes: *yes, actor: *actor})
}

// putBack returns the latest change of an item that nobody had signed, where the control
// plane has put back what was there before, and nobody has changed it since.
func putBack(entries []audit.Entry, now table.Item) (*audit.Entry, error) {
	last := len(entries) - 1
	for last >= 0 && !isByHand(&entries[last]) {
		last--
	}
	if last < 0 {
		return nil, fmt.Errorf("nothing was put back: each change that is written down is somebody's")
	}
	e := &entries[last]
	changed := func(version int64, actor string, at time.Time) error {
		return fmt.Errorf("%s was changed since it was written by hand: version %d by %s at %s", table.Printable(e.Key), version, table.Printable(actor), at.Format(time.RFC3339))
	}
	var restored int64
	for _, later := range entries[last+1:] {
		switch later.Actor {
		case controlplane.Actor:
			restored = later.Version
		case audit.Unknown: // and changed nothing
		default:
			return nil, changed(later.Version, later.Actor, later.At)
		}
	}
	switch {
	case e.Before == nil || e.Before.Deleted:
		return nil, fmt.Errorf("%s was not there before it was written by hand, so that nothing was put back", e.Key)
	case restored == 0 || now.Version < restored || now.Version == restored && now.Actor != controlplane.Actor:
		return nil, fmt.Errorf("%s was written by hand, and is not put back yet: try again when the control plane has done that", e.Key)
	case now.Version > restored: // the audit comes behind
		return nil, changed(now.Version, now.Actor, now.At)
	}
	return e, nil
}

// isByHand reports whether an entry is of a change that nobody signed.
func isByHand(e *audit.Entry) bool {
	return e.Actor == audit.Unknown && (e.Before == nil || e.After == nil || !changesNothing(e.Before, e.After))
}

// confirming returns what makes an item what was written by hand.
func (t *tableArgs) confirming(e *audit.Entry) (c table.Change, err error) {
	now := t.items[e.Key]
	c = table.Change{Key: e.Key, Before: &now}
	if e.After != nil && !e.After.Deleted {
		if c.After = e.After.Body; len(c.After) == 0 {
			return c, fmt.Errorf("what was written by hand of %s has no limits in it", e.Key)
		}
	}
	if len(table.Differences(now.Body, c.After)) == 0 {
		return c, fmt.Errorf("what was written by hand of %s changes no limit: there is nothing to confirm", e.Key)
	}
	return c, t.usable(c)
}

// usable reports whether limits that can be used can still be used after a change.
func (t *tableArgs) usable(c table.Change) error {
	parts := t.live()
	compile := func() error {
		_, _, err := config.CompileParts(t.name, parts, t.opts)
		return err
	}
	before := compile()
	if parts[c.Key] = c.After; c.After == nil {
		delete(parts, c.Key)
	}
	if err := compile(); err != nil && before == nil {
		return fmt.Errorf("with that the limits could not be used: %w", err)
	}
	return nil
}

// live returns the bodies of the table's items.
func (t *tableArgs) live() map[string]json.RawMessage {
	parts := map[string]json.RawMessage{}
	for key, it := range t.items {
		if !it.Deleted && table.IsPart(key) {
			parts[key] = it.Body
		}
	}
	return parts
}

// changesNothing reports whether a write changed neither limits nor their version.
func changesNothing(before, after *table.Item) bool {
	return after.Deleted == before.Deleted && string(after.Body) == string(before.Body) && after.Version == before.Version
}
