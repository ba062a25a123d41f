package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/audit"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awsclient"
	"github.com/limitgate/limitgate/limit"
)

const auditAbout = `Shows every change that was made to a tenant, or another item, of a table of limits.

Usage: limitgate audit --bucket BUCKET [--json] TENANT | PLAN | TENANT#NAME | PLAN#NAME | SHARED

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
	if missing := missingFlags(fs, 1, "bucket"); missing != "" {
		fmt.Fprintf(env.stderr, "limitgate %s: %s: limitgate %[1]s --bucket limits-audit acme, with the bucket that --audit-bucket of limitgate controlplane names\n", fs.Name(), missing)
		return exitUsage
	}
	key, entries, err := history(ctx, env, *bucket, fs.Arg(0))
	if err != nil {
		return fail(env, err)
	}
	if table.IsPlan(key) && key != fs.Arg(0) {
		fmt.Fprintf(env.stderr, "limitgate %s: no tenant %s is in the audit; these are the changes of %s\n", fs.Name(), table.Printable(fs.Arg(0)), table.Printable(key))
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

// namesOf returns the names in the keys of tenants and plans.
func namesOf(keys []string) (names []string) {
	for _, key := range keys {
		if kind, name, _ := strings.Cut(key, "#"); kind+"#" == table.PrefixTenant || kind+"#" == table.PrefixPlan {
			names = append(names, name)
		}
	}
	return names
}

// keyMeant returns the key that an argument is but for capitals, or nearly so, or "".
func keyMeant(arg string) string {
	kind, name, named := strings.Cut(arg, "#")
	meant := strings.ToUpper(kind)
	if near := limit.Nearest(meant, []string{table.KeyShared, table.KeyCells, strings.TrimSuffix(table.PrefixPlan, "#"), strings.TrimSuffix(table.PrefixTenant, "#"), strings.TrimSuffix(table.PrefixRevision, "#")}); near != "" {
		meant = near
	}
	if named {
		meant += "#" + name
	}
	if meant == arg || !table.IsKey(meant) {
		return ""
	}
	return meant
}

// bucketScheme begins the URL of a bucket, whose name alone is wanted.
const bucketScheme = "s3://"

// history returns the audit entries of the item that an argument names, and its key. A name is that
// of a tenant or, if the audit has none of that name, of a plan.
func history(ctx context.Context, env *environment, name, arg string) (key string, entries []audit.Entry, err error) {
	if plain, ok := strings.CutPrefix(name, bucketScheme); ok {
		return "", nil, config.Mistake("--bucket is the name alone: " + plain)
	}
	aws, err := awsclient.Load(ctx)
	if err != nil {
		return "", nil, err
	}
	defer noteWait(env.stderr, "bucket "+name)()
	bucket := audit.NewBucket(aws, name)
	key = keyOfArg(arg)
	if entries, err = audit.History(ctx, bucket, key); err != nil || len(entries) > 0 {
		return key, entries, err
	}
	all, err := bucket.Items(ctx, "")
	if err == nil && len(all) == 0 {
		return key, nil, fmt.Errorf("%s has no audit entries at all: limitgate controlplane writes them, if it has --audit-bucket %[1]s", name)
	}
	missing := fmt.Sprintf("no audit entries of %s in %s", table.Printable(key), name)
	if key == arg {
		if meant := limit.Nearest(arg, all); meant != "" {
			missing += "; did you mean " + table.Printable(meant) + "?"
		}
		return key, nil, errors.New(missing)
	}
	// An operator of one tenant may not read those of a plan: an error means that there are none.
	plan := table.PrefixPlan + arg
	if entries, _ = audit.History(ctx, bucket, plan); len(entries) > 0 {
		return plan, entries, nil
	}
	if meant := cmp.Or(keyMeant(arg), limit.Nearest(arg, namesOf(all))); meant != "" {
		return key, nil, fmt.Errorf("%s; did you mean %s?", missing, table.Printable(meant))
	}
	missing += ", nor of " + table.Printable(plan) + ": an item is TENANT, TENANT#NAME, PLAN#NAME or SHARED"
	if plans, _ := bucket.Items(ctx, table.PrefixPlan); len(plans) > 0 {
		missing += "; the plans there are " + table.Printable(strings.Join(plans, ", "))
	}
	return key, nil, errors.New(missing)
}

// tableHistory returns the audit entries of an item of a source of limits that is to be changed, and its
// key: a plan, which has many tenants, is named by its key. A bucket may have entries of other tables.
func tableHistory(ctx context.Context, env *environment, bucket, source, arg string) (key string, entries []audit.Entry, err error) {
	key, all, err := history(ctx, env, bucket, arg)
	if err != nil {
		return "", nil, err
	}
	if key != keyOfArg(arg) {
		return "", nil, fmt.Errorf("no audit entries of %s in %s: write %s for the plan", table.Printable(keyOfArg(arg)), bucket, table.Printable(key))
	}
	name := strings.TrimPrefix(source, config.LimitsTablePrefix)
	if entries = entriesOfTable(all, name); len(entries) == 0 {
		return "", nil, fmt.Errorf("no audit entries of %s of the table %s in %s: those there are of other tables", table.Printable(key), name, bucket)
	}
	return key, entries, nil
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
	fs := newFlags(env, "limits rollback", limitsAbout("rollback"), "limitgate limits rollback --bucket limits-audit --to 3 dynamodb://limits TENANT#acme")
	bucket := fs.String("bucket", "", "`name` of the S3 bucket of the audit")
	to := fs.Int64("to", 0, "`version` of the item that is to be as it was")
	yes := fs.Bool("yes", false, "write without asking")
	actor := fs.String("actor", "", "`name` of who changes this; the caller that AWS knows unless given")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	wrong := wrongArguments(fs, []string{"bucket", "to"}, tableArgument, "item")
	if wrong == "" && *to < 1 {
		wrong = fmt.Sprintf("--to is %d, and the first version of an item is 1", *to)
	}
	if wrong != "" {
		fmt.Fprintf(env.stderr, "limitgate limits rollback: %s: limitgate limits rollback --bucket limits-audit --to 3 dynamodb://limits TENANT#acme\n", wrong)
		return exitUsage
	}
	key, entries, err := tableHistory(ctx, env, *bucket, fs.Arg(0), fs.Arg(1))
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
	changes := []table.Change{c}
	if c.Before == nil && c.After == nil || c.Before != nil && c.After != nil && table.Equal(c.Before.Body, c.After) {
		changes = nil // a version like the present one would be empty
	}
	return t.apply(ctx, env, changes, pushOptions{yes: *yes, actor: *actor})
}

// entriesOfTable returns the entries of one table, and those that do not say of which they are.
func entriesOfTable(entries []audit.Entry, name string) (of []audit.Entry) {
	for i := range entries {
		if entries[i].Table == "" || entries[i].Table == name {
			of = append(of, entries[i])
		}
	}
	return of
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
	return c, noRollback(entries, key, version)
}

// noRollback returns why an item cannot be restored to a version, and the versions that it can be restored to.
func noRollback(entries []audit.Entry, key string, version int64) error {
	var restorable []int64
	reason := fmt.Sprintf("no audit entry of version %d of %s", version, table.Printable(key))
	for i := range entries {
		switch e := &entries[i]; {
		case e.Actor != audit.Unknown && e.After != nil:
			restorable = append(restorable, e.Version)
		case e.Version == version && e.After == nil:
			reason = fmt.Sprintf("the audit has of version %d of %s only that it was deleted by hand", version, table.Printable(key))
		case e.Version == version:
			reason = fmt.Sprintf("the audit has of version %d of %s only a change by hand, which the control plane reverts", version, table.Printable(key))
		}
	}
	if len(restorable) == 0 {
		return fmt.Errorf("%s; there is no version to go back to: limitgate limits push writes the limits of a file", reason)
	}
	slices.Sort(restorable)
	restorable = slices.Compact(restorable)
	const maxListed = 20
	versions, label := make([]string, 0, maxListed), "the versions"
	for _, v := range restorable[max(0, len(restorable)-maxListed):] {
		versions = append(versions, strconv.FormatInt(v, 10))
	}
	if len(restorable) > maxListed {
		label = "the latest versions"
	}
	return fmt.Errorf("%s; %s to go back to: %s", reason, label, strings.Join(versions, ", "))
}
