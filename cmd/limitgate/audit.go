package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/limitgate/limitgate/controlplane/audit"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awsclient"
)

const auditAbout = `Shows every change that was made to a tenant, or another item, of a table of limits.

Usage: limitgate audit --bucket BUCKET [--json] TENANT | TENANT#NAME | PLAN#NAME | SHARED

It reads what limitgate controlplane wrote down, the oldest first: when, who, and
what was before and after. It exits with 0 when there is something, 1 when not and
64 when the arguments are wrong.`

func runAudit(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "audit", auditAbout, "limitgate audit --bucket limits-audit acme")
	return showHistory(ctx, env, fs, args, func(entries []audit.Entry) {
		for i := range entries {
			printEntry(env.stdout, &entries[i], env.coloured())
		}
	})
}

// showHistory reads the audit entries of an item and prints them, as JSON if requested.
func showHistory(ctx context.Context, env *environment, fs *flag.FlagSet, args []string, show func([]audit.Entry)) int {
	bucket := fs.String("bucket", "", "`name` of the S3 bucket")
	asJSON := fs.Bool("json", false, "print each change as a line of JSON")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if fs.NArg() != 1 || *bucket == "" {
		fmt.Fprintf(env.stderr, "limitgate %s: --bucket and a tenant are needed: limitgate %s --bucket limits-audit acme\n", fs.Name(), fs.Name())
		return exitUsage
	}
	entries, err := history(ctx, *bucket, keyOfArg(fs.Arg(0)))
	if err != nil {
		return fail(env, err)
	}
	if !*asJSON {
		show(entries)
		return exitOK
	}
	for i := range entries {
		_ = json.NewEncoder(env.stdout).Encode(&entries[i])
	}
	return exitOK
}

// keyOfArg returns the key of an argument: the argument itself if it is a key, otherwise
// the key of the tenant of that name.
func keyOfArg(arg string) string {
	if table.IsKey(arg) {
		return arg
	}
	return table.PrefixTenant + arg
}

func history(ctx context.Context, bucket, key string) ([]audit.Entry, error) {
	aws, err := awsclient.Load(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := audit.History(ctx, audit.NewBucket(aws, bucket), key)
	if err == nil && len(entries) == 0 {
		err = fmt.Errorf("no audit entries of %s in %s", key, bucket)
	}
	return entries, err
}

func printEntry(w io.Writer, e *audit.Entry, colour bool) {
	fmt.Fprintf(w, "%s  version %d by %s\n", e.At.Format(time.RFC3339), e.Version, table.Printable(e.Actor))
	printChanges(w, []table.Change{changeOf(e)}, colour)
}

// changeOf returns the change that an entry records.
func changeOf(e *audit.Entry) table.Change {
	c := table.Change{Key: e.Key, Before: e.Before}
	if e.Before != nil && e.Before.Deleted {
		c.Before = nil
	}
	if e.After != nil && !e.After.Deleted {
		c.After = e.After.Body
	}
	return c
}

func runRollback(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits rollback", limitsAbout, "limitgate limits rollback --bucket limits-audit --to 3 dynamodb://limits TENANT#acme")
	bucket := fs.String("bucket", "", "`name` of the S3 bucket of the audit")
	to := fs.Int64("to", 0, "`version` of the item that is to be as it was")
	yes := fs.Bool("yes", false, "write without asking")
	actor := fs.String("actor", "", "`name` of who changes this; the caller that AWS knows unless given")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if fs.NArg() != 2 || !isTable(fs.Arg(0)) || *bucket == "" || *to < 1 {
		fmt.Fprintln(env.stderr, "limitgate limits rollback: --bucket, --to VERSION, a table and an item are needed: limitgate limits rollback --bucket limits-audit --to 3 dynamodb://limits TENANT#acme")
		return exitUsage
	}
	key := keyOfArg(fs.Arg(1))
	entries, err := history(ctx, *bucket, key)
	if err != nil {
		return fail(env, err)
	}
	t, err := openTableArgs(ctx, env, "", fs.Arg(0), 0)
	if err != nil {
		return fail(env, err)
	}
	c, err := rollbackOf(entries, t.items, key, *to)
	if err != nil {
		return fail(env, err)
	}
	return t.apply(ctx, env, []table.Change{c}, pushOptions{yes: *yes, actor: *actor})
}

// rollbackOf returns the change that restores an item to a version. If several entries
// have that version, it takes the latest: after the tombstone of an item expires, the
// item starts again with version 1.
func rollbackOf(entries []audit.Entry, items map[string]table.Item, key string, version int64) (c table.Change, err error) {
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		if e.After == nil || e.Version != version || e.Actor == audit.Unknown {
			continue
		}
		c = table.Change{Key: key}
		if !e.After.Deleted {
			c.After = e.After.Body
		}
		if it, ok := items[key]; ok && !it.Deleted {
			c.Before = &it
		}
		return c, nil
	}
	return c, fmt.Errorf("no audit entry of version %d of %s", version, key)
}
