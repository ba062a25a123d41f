package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/limitgate/limitgate/controlplane"
	"github.com/limitgate/limitgate/controlplane/audit"
	"github.com/limitgate/limitgate/controlplane/table"
)

func runConfirm(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits confirm", limitsAbout("confirm"), "limitgate limits confirm --bucket limits-audit dynamodb://limits TENANT#acme")
	bucket := fs.String("bucket", "", "`name` of the S3 bucket of the audit")
	ttl := ipMaxTTLFlag(env, fs)
	yes := fs.Bool("yes", false, "write without asking")
	actor := fs.String("actor", "", "`name` of who confirms this; the caller that AWS knows unless given")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if wrong := wrongArguments(fs, []string{"bucket"}, tableArgument, "item"); wrong != "" {
		fmt.Fprintf(env.stderr, "limitgate limits confirm: %s: limitgate limits confirm --bucket limits-audit dynamodb://limits TENANT#acme\n", wrong)
		return exitUsage
	}
	key, entries, err := tableHistory(ctx, env, *bucket, fs.Arg(0), fs.Arg(1))
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
	fmt.Fprintf(env.stdout, "written by hand, found at %s, and reverted as version %d\n", e.At.Format(time.RFC3339), t.items[key].Version)
	return t.apply(ctx, env, []table.Change{c}, pushOptions{yes: *yes, actor: *actor})
}

// putBack returns the latest change of an item that was made without an actor, if the
// control plane has reverted it and the item has not changed since.
func putBack(entries []audit.Entry, now table.Item) (*audit.Entry, error) {
	last := len(entries) - 1
	for last >= 0 && !isByHand(&entries[last]) {
		last--
	}
	for _, e := range slices.Backward(entries) {
		if last < 0 && e.Actor == audit.Unknown {
			return nil, fmt.Errorf("nothing was reverted: the write by hand of %s changed no limits", e.At.Format(time.RFC3339))
		}
	}
	if last < 0 {
		return nil, fmt.Errorf("nothing was reverted: each change in the audit has an actor")
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
		case audit.Unknown: // the write changed nothing
		default:
			return nil, changed(later.Version, later.Actor, later.At)
		}
	}
	switch {
	case e.Before == nil || e.Before.Deleted:
		return nil, fmt.Errorf("%s did not exist before it was written by hand, so nothing was reverted: proxies do not use it until limitgate limits push writes it, from a file that has it", e.Key)
	case restored == 0 || now.Version < restored || now.Version == restored && now.Actor != controlplane.Actor:
		return nil, fmt.Errorf("%s was written by hand, and is not reverted yet: try again when the control plane has done that", e.Key)
	case now.Version > restored: // the audit is behind the table
		return nil, changed(now.Version, now.Actor, now.At)
	}
	return e, nil
}

// isByHand reports whether an entry records a change without an actor.
func isByHand(e *audit.Entry) bool {
	return e.Actor == audit.Unknown && e.ChangesLimits()
}

// confirming returns the change that writes the reverted content of an item again.
func (t *tableArgs) confirming(e *audit.Entry) (c table.Change, err error) {
	now := t.items[e.Key]
	c = table.Change{Key: e.Key, Before: &now}
	if e.After != nil && !e.After.Deleted {
		if c.After = e.After.Body; len(c.After) == 0 {
			return c, fmt.Errorf("the content of %s that was written by hand has no limits", e.Key)
		}
	}
	if len(table.Differences(now.Body, c.After)) == 0 {
		return c, fmt.Errorf("the content of %s that was written by hand changes no limit: there is nothing to confirm", e.Key)
	}
	return c, t.breaks(t.compiles(t.after([]table.Change{c})))
}

// live returns the bodies of the items that are not deleted, and in a table those that proxies can use.
func (t *tableArgs) live() map[string]json.RawMessage {
	parts := map[string]json.RawMessage{}
	for key, it := range t.items {
		if !it.Deleted && table.IsPart(key) && (t.table == nil || it.Flaw() == "") {
			parts[key] = it.Body
		}
	}
	return parts
}
