package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

const checkAbout = `Asks a running limitgate whether a cost may be taken now, and takes it.

Usage: limitgate check [flags] TENANT OP IP [COST] [DIM NAME VALUE [DIM NAME VALUE ...]]

A - stands for no op, for no ip, or for the tenant of the user, and DIM stands
before every dimension. It prints the decision for people, or with --json for
machines, and exits with 0 when it is admitted, 2 when it is denied, 1 when
there is no decision and 64 when the arguments are wrong.`

// decision is the reply of RL.CHECK.
type decision struct {
	Allowed    bool   `json:"allowed"`
	Limit      int64  `json:"limit"`
	Remaining  int64  `json:"remaining"`
	RetryAfter int64  `json:"retry_after_ms"`
	ResetAfter int64  `json:"reset_after_ms"`
	LimitID    string `json:"limit_id"`
	Source     string `json:"source"`

	explained string        // the verdict of RL.EXPLAIN about a refusal, or ""
	allowing  string        // the limit that allows the request at every level, or ""
	watched   bool          // limits in shadow mode apply
	cost      int64         // of the request
	spread    time.Duration // the part of RetryAfter that keeps callers from coming back together, or 0 if it is not known
}

func runCheck(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "check", checkAbout,
		`limitgate check acme "POST /v1/payments" 203.0.113.7 1`, `limitgate check acme "GET /v1/search" - 1 DIM user u1`)
	addr := new(string)
	var flags clientFlags
	flags.defineAddr(env, fs, addr)
	asJSON := fs.Bool("json", false, "print the decision as JSON")
	peek := fs.Bool("peek", false, "ask without taking anything")
	timeout := fs.Duration("timeout", 5*time.Second, "how long to wait for an answer")
	flags.define(fs)
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if err := notAFile(fs.Args(), "explain FILE TENANT OP IP"); err != nil {
		fmt.Fprintf(env.stderr, "limitgate check: %v\n", err)
		return exitUsage
	}
	req, err := commands.ParseRequest(ownTenantNamed(fs.Args()))
	if err != nil {
		peek := ""
		if fs.NArg() > 3 && fs.Arg(3) == "0" && strings.HasPrefix(err.Error(), "cost ") {
			peek = "; --peek takes nothing"
		}
		fmt.Fprintf(env.stderr, "limitgate check: %v\n", mistakeOrAddr(fmt.Errorf("%w%s", err, peek), fs))
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	client, err := flags.newClient(*addr, *timeout, 3)
	if err != nil {
		return fail(env, fmt.Errorf("check: %w", err))
	}
	defer func() { _ = client.Close() }()
	name := "RL.CHECK"
	if *peek {
		name = "RL.PEEK"
	}
	asked := time.Now()
	d, err := askDecision(client.Do(ctx, wordsOf(name, fs.Args())...))
	if err != nil {
		return fail(env, fmt.Errorf("check: %w", explainDial(*addr, err)))
	}
	d.cost = req.Cost
	if ignoresPassword(ctx, client) {
		printWarnings(env, fs.Name(), []string{fmt.Sprintf("--password-file has no effect: the limitgate at %s asks the default user for no password", *addr)})
	}
	warnings := d.explain(ctx, client, fs.Args(), asked)
	printWarnings(env, fs.Name(), warnings)
	if *asJSON {
		_ = json.NewEncoder(env.stdout).Encode(d)
	} else {
		fmt.Fprintln(env.stdout, d)
	}
	if !d.Allowed {
		return exitDenied
	}
	return exitOK
}

// refused reports that no bucket was read: the limit is a ban, or demands a dimension that the request lacks.
func (d *decision) refused() bool {
	return !d.Allowed && d.RetryAfter < 0 && d.Source == limit.SourcePolicy.String()
}

// explainTimeout bounds how long check waits for warnings: it has the decision.
const explainTimeout = time.Second

// explain asks RL.EXPLAIN about the verdict on a refusal and the spread of a denial, and returns the warnings
// about the request. Asked is the time before the decision was asked for: the wait of RL.EXPLAIN is shorter by what
// has passed since. A user who may check need not have the right to ask, and all of that is unknown then.
func (d *decision) explain(ctx context.Context, client *redis.Client, args []string, asked time.Time) (warnings []string) {
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	reply, err := client.Do(ctx, wordsOf("RL.EXPLAIN", args)...).Result()
	if err != nil {
		if d.refused() && strings.HasPrefix(err.Error(), "NOPERM") {
			d.explained = "denied by " + d.LimitID + ", which refuses such requests or demands what this one lacks: RL.EXPLAIN says which, to a user with +@read"
		}
		return nil
	}
	named := withNames(reply)
	x := explanationOfReply(args, named)
	if d.refused() && !x.bans(d.LimitID) {
		d.explained = cmp.Or(x.refusal(d.LimitID), d.tooCostly())
	}
	d.allowing = x.allowing()
	d.watched = slices.ContainsFunc(x.limits, func(l explainedLimit) bool { return l.watches() })
	if wait := waitOfReply(named, d.LimitID); wait > 0 {
		d.spread = max(0, millis(d.RetryAfter-wait)-time.Since(asked)).Truncate(time.Millisecond)
	}
	return warningsOfReply(named)
}

var errNotADecision = errors.New("the reply is not a decision: is that a limitgate?")

// askDecision reads a decision from a reply.
func askDecision(cmd *redis.Cmd) (decision, error) {
	fields, err := cmd.Slice()
	if err != nil {
		return decision{}, err
	}
	if len(fields) < 7 {
		return decision{}, errNotADecision
	}
	var n [5]int64
	for i := range n {
		v, ok := fields[i].(int64)
		if !ok {
			return decision{}, errNotADecision
		}
		n[i] = v
	}
	id, ok := fields[5].(string)
	source, ok2 := fields[6].(string)
	if !ok || !ok2 {
		return decision{}, errNotADecision
	}
	return decision{Allowed: n[0] == 1, Limit: n[1], Remaining: n[2], RetryAfter: n[3], ResetAfter: n[4], LimitID: table.Printable(id), Source: table.Printable(source)}, nil
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// String returns the decision as a sentence.
func (d decision) String() string {
	switch {
	case d.Allowed && d.LimitID == "" && d.watched:
		return "admitted" + noEnforced + "; limitgate explain has those in shadow mode"
	case d.Allowed && d.LimitID == "" && d.allowing != "":
		return "admitted: " + d.allowing + " allows it"
	case d.Allowed && d.LimitID == "":
		return "admitted" + noLimit
	case d.Allowed:
		return fmt.Sprintf("admitted by %s: %d of %d left, full again in %s (source %s)",
			d.LimitID, d.Remaining, d.Limit, millis(d.ResetAfter), d.source())
	case d.LimitID == "":
		return fmt.Sprintf("denied by %s: retry after %s (source %s)", totalRate, millis(d.RetryAfter), d.Source)
	case d.refused() && d.explained != "":
		return d.explained + " (source policy)"
	case d.refused():
		return fmt.Sprintf("denied by %s, which refuses such requests (source policy)", d.LimitID)
	case d.RetryAfter < 0:
		return fmt.Sprintf("%s (source %s)", d.tooCostly(), d.Source)
	case d.Source == limit.SourcePolicy.String():
		return fmt.Sprintf("denied by %s, %s: retry after %s (source policy)", d.LimitID, failsClosed, millis(d.RetryAfter))
	default:
		spread := ""
		if d.spread > 0 {
			spread = fmt.Sprintf(", %s of it to spread callers", d.spread)
		}
		return fmt.Sprintf("denied by %s: %d of %d left, retry after %s%s (source %s)",
			d.LimitID, d.Remaining, d.Limit, millis(d.RetryAfter), spread, d.source())
	}
}

// tooCostly describes a denial for ever of a limit that refuses nothing by itself.
func (d decision) tooCostly() string {
	why := "its max_cost is lower"
	if d.cost > d.Limit {
		why = "it holds " + table.Counted(int(d.Limit), "unit")
	}
	return fmt.Sprintf("denied by %s, which never admits a cost of %d: %s", d.LimitID, d.cost, why)
}

// source returns the source. A backstop may have decided another limit than the one that is named.
func (d decision) source() string {
	if d.Source == limit.SourceBackstop.String() {
		return d.Source + ", for at least one limit"
	}
	return d.Source
}
