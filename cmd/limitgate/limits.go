package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

const limitsAbout = `Works on limits files, and on tables of limits.

Usage:

	limitgate limits lint [--strict [--backstop-total-rate N] [--instances N]] FILE
	limitgate limits explain FILE TENANT OP IP [COST] [DIM NAME VALUE [DIM NAME VALUE ...]]
	limitgate limits diff FILE dynamodb://TABLE
	limitgate limits push [--yes] [--actor NAME] [--removes NUMBER] FILE dynamodb://TABLE
	limitgate limits pull dynamodb://TABLE
	limitgate limits history --bucket BUCKET [--json] ITEM
	limitgate limits watch --updates ARN|URL [--json] dynamodb://TABLE
	limitgate limits rollback --bucket BUCKET --to VERSION [--yes] [--actor NAME] dynamodb://TABLE ITEM
	limitgate limits confirm --bucket BUCKET [--yes] [--actor NAME] dynamodb://TABLE ITEM

lint lists every mistake as FILE:LINE: FIELD: what is wrong and what would be
right, warns of what is seldom meant, and prints what each limit costs the
store. With --strict it also asks for a --backstop-total-rate of serve, and says
which would fit.

explain says which limits one request would meet, and why. DIM stands before
every dimension.

diff prints what push would write: first the limits that it loosens, then item by
item the plans, all that is shared and the tenants. push asks first, unless --yes is given,
and writes each item only if it is still the one that was shown. A file that removes
the default plan, a shared limit, several plans or all limits of one, or more than a
tenth of the tenants or 100 of them is written only if --removes names the number that it says. pull prints the table as a file.

history prints a line for each change of one item, the newest last, as the audit
has them; limitgate audit prints them whole. rollback makes one item what it was at
a version. confirm applies on purpose what was written or deleted by hand and put
back by the control plane, since nobody had signed it. An ITEM is TENANT,
TENANT#NAME, PLAN#NAME or SHARED.

watch prints changes as they happen, until it is interrupted. It is told of them as
a proxy is, by a queue of its own. AWS is found as its own tools find it.

All exit with 0 when it is done or the file can be used, 1 when not, and with
64 when the arguments are wrong; diff exits with 2 when there is a difference.`

func runLimits(ctx context.Context, env *environment, args []string) int {
	if len(args) > 0 {
		switch args[0] {
		case "lint":
			return runLint(ctx, env, args[1:])
		case "explain":
			return runExplain(ctx, env, args[1:])
		case "diff":
			return runDiff(ctx, env, args[1:])
		case "push":
			return runPush(ctx, env, args[1:])
		case "pull":
			return runPull(ctx, env, args[1:])
		case "history":
			return runHistory(ctx, env, args[1:])
		case "watch":
			return runWatch(ctx, env, args[1:])
		case "rollback":
			return runRollback(ctx, env, args[1:])
		case "confirm":
			return runConfirm(ctx, env, args[1:])
		}
	}
	fs := newFlags(env, "limits", limitsAbout, "limitgate limits lint examples/limits.yaml")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	fmt.Fprintln(env.stderr, "limitgate limits: say lint, explain, diff, push, pull, history, watch, rollback or confirm; limitgate limits --help says more")
	return exitUsage
}

func runLint(_ context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits lint", limitsAbout, "limitgate limits lint examples/limits.yaml")
	strict := fs.Bool("strict", false, "also demand on_error on every limit, and a secret if addresses are counted")
	ttl := ipMaxTTLFlag(fs)
	secret := fs.String("privacy-ip-secret-file", "", "`file` of the secret that addresses are hashed with")
	var ceiling ceilingFlags
	ceiling.define(fs)
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if err := ceiling.check(); err != nil {
		fmt.Fprintf(env.stderr, "limitgate limits lint: %s\n", err)
		return exitUsage
	}
	if fs.NArg() != 1 {
		fmt.Fprintln(env.stderr, "limitgate limits lint: one file is needed: limitgate limits lint limits.yaml")
		return exitUsage
	}
	if *secret != "" {
		if _, err := config.ReadSecret(*secret); err != nil {
			return fail(env, err)
		}
	}
	set, warnings, err := loadLimits(env, fs.Arg(0), limit.CompileOptions{
		IPMaxTTL: ttl.Microseconds(), Strict: *strict, IPSecret: *secret != "",
	})
	for _, w := range warnings {
		fmt.Fprintf(env.stdout, "%s (warning)\n", w.Format(fs.Arg(0)))
	}
	if err != nil {
		fmt.Fprintln(env.stderr, err)
		return exitError
	}
	if *strict && ceiling.totalRate == 0 {
		fmt.Fprintf(env.stdout, "%s: %s (warning)\n", fs.Arg(0), backstop.CeilingAdvice(set.TotalRate(), ceiling.instances))
	}
	printExpectations(env.stdout, set)
	return exitOK
}

func printExpectations(w io.Writer, set *limit.Set) {
	fmt.Fprintf(w, "%d limits in %d plans, %d tenants listed, version %s\n", len(set.IDs), set.Plans(), set.Tenants(), set.Version)
	fmt.Fprintf(w, "at most %d enforced limits for one request\n", set.MaxEnforced())
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "LIMIT\tFROM\tKEYS IN THE STORE")
	for _, e := range set.ExpectedKeys() {
		from := "shared"
		if e.Limit.Plan != "" {
			from = "plan " + e.Limit.Plan
		}
		if e.Limit.Tenant != "" {
			from = "tenant " + e.Limit.Tenant
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", e.Limit.ID, from, e.Text)
	}
	_ = tw.Flush()
}

// loadLimits reads a limits file; - is standard input.
func loadLimits(env *environment, path string, opts limit.CompileOptions) (*limit.Set, []limit.Problem, error) {
	var content []byte
	var err error
	if path == "-" {
		content, err = config.ReadLimits(env.stdin)
	} else {
		content, err = config.ReadLimitsFile(path)
	}
	if err != nil {
		return nil, nil, err
	}
	return config.ParseLimits(path, content, opts)
}

func runExplain(_ context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits explain", limitsAbout,
		`limitgate limits explain examples/limits.yaml acme "POST /v1/payments" 203.0.113.7`,
		`limitgate limits explain examples/limits.yaml acme "GET /v1/search" - 1 DIM user u1`)
	secretFile := fs.String("privacy-ip-secret-file", "", "`file` of the secret that addresses are hashed with, to print the keys of a store")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if fs.NArg() < 4 {
		fmt.Fprintln(env.stderr, "limitgate limits explain: a file, tenant, op and ip are needed; limitgate limits explain --help says more")
		return exitUsage
	}
	set, _, err := loadLimits(env, fs.Arg(0), limit.CompileOptions{})
	if err != nil {
		fmt.Fprintln(env.stderr, err)
		return exitError
	}
	req, err := commands.ParseRequest(fs.Args()[1:])
	if err != nil {
		fmt.Fprintf(env.stderr, "limitgate limits explain: %s; limitgate limits explain --help says more\n", err)
		return exitUsage
	}
	secret := limit.RandomSecret()
	if *secretFile != "" {
		if secret, err = config.ReadSecret(*secretFile); err != nil {
			return fail(env, err)
		}
	}
	l, err := localLimiter(set, secret)
	if err != nil {
		return fail(env, err)
	}
	var batch limiter.Batch
	printExplanation(env.stdout, &req, l.Explain(&batch, &req), *secretFile == "")
	return exitOK
}

// localLimiter returns a limiter on an empty memory store.
func localLimiter(set *limit.Set, secret []byte) (*limiter.Limiter, error) {
	addrs, err := limit.NewAddrHasher(secret, limit.Prefixes{})
	if err != nil {
		return nil, err
	}
	return limiter.New(limiter.Options{
		Store:    memory.New(memory.Options{}),
		Backstop: backstop.New(backstop.Options{}),
		Addrs:    addrs,
		Timeout:  time.Second,
	}, set), nil
}

// printExplanation prints the verdict of each limit. MadeUp reports that the secret that
// hashes addresses was generated for this run.
func printExplanation(w io.Writer, req *limit.Request, x limiter.Explanation, madeUp bool) {
	set, d := x.Set, &x.Decision
	plan := set.Plan(req.Tenant)
	if plan == "" {
		plan = "none"
	}
	fmt.Fprintf(w, "tenant %s, plan %s, limits version %s\n", req.Tenant, plan, set.Version)
	verdict := "admitted"
	if !d.Allowed {
		verdict = "denied"
	}
	if d.Binding == nil {
		fmt.Fprintf(w, "%s: no limit applies\n", verdict)
	} else {
		if d.RetryAfter == bucket.Never && d.Binding.Action == limit.ActionLimit {
			verdict += fmt.Sprintf(" for ever, since a cost of %d is more than %d", req.Cost, d.Limit)
		}
		fmt.Fprintf(w, "%s, bound by %s\n", verdict, d.LimitID())
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\tLIMIT\tLEVEL\tRATE\tALGORITHM\tMODE\tON_ERROR\tSTORE\tLEASE\tWHY\tKEY AND FIELD")
	for _, e := range x.Limits {
		mark := ""
		if e.Applies {
			mark = "*"
		}
		algorithm, store := "-", "-"
		if e.Limit.Action == limit.ActionLimit {
			algorithm, store = e.Limit.Params.Algorithm.String(), e.Limit.Store.String()
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", mark, e.Limit.ID, strings.Join(e.Limit.Level(), ","),
			e.Limit.Describe(), algorithm, e.Limit.Mode, e.Limit.OnError, store, e.Limit.Lease, e.Reason, keyOf(&e, madeUp))
	}
	_ = tw.Flush()
}

// keyOf returns the key, and the field in it, under which the store keeps the bucket.
func keyOf(e *limiter.Explained, madeUp bool) string {
	switch {
	case e.Item == nil:
		return ""
	case e.Limit.Store == limit.PlacementLocal:
		return "none, kept in the proxy"
	}
	key := strings.TrimSpace(string(e.Item.Name[:e.Item.KeyLen]) + " " + string(e.Item.Name[e.Item.KeyLen:]))
	if madeUp && e.Limit.CountsAddresses() {
		key += " (example hash)"
	}
	return key
}
