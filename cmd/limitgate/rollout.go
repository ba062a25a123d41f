package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/appconfig"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
)

const rolloutAbout = `Tries the plans and the shared limits of a file on some of a table's tenants.

Usage:

	limitgate rollout start --gate CONFIGURATION [--percent 5] [--threshold 5] FILE dynamodb://TABLE
	limitgate rollout status --gate CONFIGURATION [--cells TABLE] dynamodb://TABLE
	limitgate rollout promote --gate CONFIGURATION --cells TABLE | --despite-veto dynamodb://TABLE
	limitgate rollout abort --gate CONFIGURATION dynamodb://TABLE

start writes a revision into the table, and has the gate, a configuration in AWS
AppConfig, name it and the share of tenants. It is always the same tenants, and
those of a share are in each larger one: start again with a larger --percent. A
proxy that finds the revision to deny more than --threshold points more of the
requests of a minute than what it is to replace takes it back, and the control
plane then does so everywhere. promote makes the revision the limits of all
tenants, unless a proxy has found it to deny too much: that is written in the table
of --cells, and --despite-veto promotes without looking there. abort forgets the
revision. The file's tenants are not written: push does that.

CONFIGURATION is appconfig://APPLICATION/ENVIRONMENT/PROFILE, by their ids. start,
promote and abort ask first, unless --yes is given.

All exit with 0 when it is done, 1 when not, and 64 when the arguments are wrong;
status exits with 2 while a revision is tried.`

// rolloutArgs are the arguments of all four subcommands.
type rolloutArgs struct {
	gate, strategy, actor, cells string
	percent, threshold           float64
	yes, despiteVeto             bool
	removes                      int
	ttl                          *time.Duration

	*tableArgs
	deployments *appconfig.Deployments
	state       string // of the gate, to be printed
}

const rolloutExample = "limitgate rollout start --gate appconfig://abc1234/def5678/ghi9012 limits.yaml dynamodb://limits"

// rolloutCommands are the commands of rollout.
func rolloutCommands() []subcommand {
	words := []struct {
		word string
		run  func(context.Context, *environment, *rolloutArgs) int
	}{{"start", rolloutStart}, {"status", rolloutStatus}, {"promote", rolloutPromote}, {"abort", rolloutAbort}}
	var all []subcommand
	for _, w := range words {
		all = append(all, subcommand{name: w.word, run: func(ctx context.Context, env *environment, args []string) int {
			return runRolloutWord(ctx, env, w.word, args, w.run)
		}})
	}
	return all
}

func runRollout(ctx context.Context, env *environment, args []string) int {
	for _, c := range rolloutCommands() {
		if len(args) > 0 && args[0] == c.name {
			return c.run(ctx, env, args[1:])
		}
	}
	fs := newFlags(env, "rollout", rolloutAbout, rolloutExample)
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	fmt.Fprintf(env.stderr, "limitgate rollout: %ssay start, status, promote or abort; limitgate rollout --help says more\n", noCommand(fs, rolloutCommands()))
	return exitUsage
}

// runRolloutWord reads what a command of rollout needs, and runs it.
func runRolloutWord(ctx context.Context, env *environment, word string, args []string, run func(context.Context, *environment, *rolloutArgs) int) int {
	r := &rolloutArgs{}
	fs := newFlags(env, "rollout "+word, rolloutAbout, rolloutExample)
	r.flags(env, fs, word)
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	file, wanted := "", 1
	if word == "start" {
		file, wanted = fs.Arg(0), 2
	}
	if fs.NArg() != wanted || !isTable(fs.Arg(wanted-1)) || r.gate == "" {
		example := rolloutExample
		if word != "start" {
			example = strings.NewReplacer(" start ", " "+word+" ", " limits.yaml", "").Replace(example)
		}
		fmt.Fprintf(env.stderr, "limitgate rollout %s: %s\n", word, cmp.Or(missingFlags(fs, wanted, "gate"), "the last argument is the table, dynamodb://TABLE")+": "+example)
		return exitUsage
	}
	gate, err := appconfig.ParseName(r.gate)
	if err != nil {
		fmt.Fprintf(env.stderr, "limitgate rollout %s: %s\n", word, err)
		return exitUsage
	}
	if err := r.open(ctx, env, gate, file, fs.Arg(wanted-1)); err != nil {
		return fail(env, err)
	}
	return run(ctx, env, r)
}

func (r *rolloutArgs) flags(env *environment, fs *flag.FlagSet, word string) {
	fs.StringVar(&r.gate, "gate", "", "the `configuration` in AWS AppConfig that is the gate")
	if r.ttl = new(time.Duration); word == "start" || word == "promote" { // these two check a revision
		r.ttl = ipMaxTTLFlag(env, fs)
	}
	if word == "status" || word == "promote" {
		fs.StringVar(&r.cells, "cells", "", "`name` of the DynamoDB table with the vetoes of proxies")
	}
	if word == "start" || word == "promote" {
		fs.IntVar(&r.removes, "removes", 0, "have the revision remove at most this `number` of items, where that is much: the refusal names it")
	}
	if word == "promote" {
		fs.BoolVar(&r.despiteVeto, "despite-veto", false, "promote a revision without looking whether a proxy has found it to deny too much")
	}
	if word == "status" {
		return
	}
	fs.StringVar(&r.strategy, "strategy", appconfig.DefaultStrategy, "`id` of the deployment strategy of the gate")
	fs.BoolVar(&r.yes, "yes", false, "write without asking")
	fs.StringVar(&r.actor, "actor", "", "`name` of who does this; the caller that AWS knows unless given")
	if word == "start" {
		r.percent, r.threshold = 5, 5
		fs.Func("percent", "the `share` of tenants, 0 to 100 (default 5)", percentInto(&r.percent))
		fs.Func("threshold", "by how many `points` of all requests the revision may deny more, 0 to 100 (default 5)", percentInto(&r.threshold))
	}
}

// percentInto returns a parser for a number with or without a percent sign.
func percentInto(to *float64) func(string) error {
	return func(text string) (err error) {
		if *to, err = strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64); err != nil {
			return fmt.Errorf("%s is not a percentage; write for example 5 or 0.5%%", config.Quote(text))
		}
		if !(*to >= 0 && *to <= 100) { // not a number, too
			return fmt.Errorf("%s is out of bounds; write 0 to 100", config.Quote(text))
		}
		return nil
	}
}

// open reads the table, and the file if a path is given.
func (r *rolloutArgs) open(ctx context.Context, env *environment, gate appconfig.Name, file, name string) (err error) {
	if r.tableArgs, err = openTableArgs(ctx, env, file, name, *r.ttl); err != nil {
		return err
	}
	r.deployments = appconfig.NewDeployments(r.aws, gate)
	r.state, err = r.deployments.Latest(ctx) // before anything is written
	return err
}

// revision returns the current revision, nil if there is none, and the number of the
// latest revision that ever existed.
func (r *rolloutArgs) revision() (it *table.Item, latest int64) {
	live := int64(0)
	for key, item := range r.items {
		n, ok := table.RevisionNumber(key)
		if !ok {
			continue
		}
		latest = max(latest, n)
		if !item.Deleted && n > live {
			it, live = &item, n
		}
	}
	return it, latest
}

func rolloutStart(ctx context.Context, env *environment, r *rolloutArgs) int {
	gate := table.Gate{Percent: r.percent, Threshold: r.threshold}
	for _, kind := range []string{config.PartShared, config.PartPlans} {
		if !slices.Contains(r.complete, kind) {
			return fail(env, fmt.Errorf("a revision replaces all plans and shared limits: the file has to be complete_for %s", kind))
		}
	}
	body, err := config.SplitRevision(r.parts)
	if err != nil {
		return fail(env, err)
	}
	there, latest := r.revision()
	gate.Revision = latest + 1
	changes := []table.Change{{Key: table.RevisionKey(gate.Revision), After: body}}
	switch {
	case there != nil && table.Equal(there.Body, body):
		gate.Revision, _ = table.RevisionNumber(there.Key)
		changes = nil
	case there != nil:
		return fail(env, fmt.Errorf("%s is there: promote or abort it first", there.Key))
	}
	if err := r.check(body, gate); err != nil {
		return fail(env, err)
	}
	would := r.compared(body)
	fmt.Fprintf(env.stdout, "%s, on %g %% of the tenants, would change:\n", config.RevisionName(gate.Revision), gate.Percent)
	loosened, _ := r.loosened(would)
	printLoosened(env.stdout, loosened, env.coloured())
	printChanges(env.stdout, would, env.coloured())
	if r.removesMore(env, would) || !r.sure(env) {
		return exitError
	}
	return r.do(ctx, env, changes, &gate)
}

// removesMore reports, and prints, whether a revision would remove more than --removes
// allows.
func (r *rolloutArgs) removesMore(env *environment, would []table.Change) bool {
	removed := table.RemovalOf(r.items, would)
	if !removed.IsLarge() || removed.Count() <= r.removes {
		return false
	}
	fmt.Fprintf(env.stderr, "limitgate rollout: nothing is done: the revision would remove %s; if that is meant, say --removes %d\n", &removed, removed.Count())
	return true
}

// check refuses a revision that proxies could not compile.
func (r *rolloutArgs) check(body json.RawMessage, gate table.Gate) error {
	text, err := json.Marshal(gate)
	if err != nil {
		return fmt.Errorf("start rollout: %w", err)
	}
	if _, err := table.ReadGate(text); err != nil {
		return err
	}
	parts := map[string]json.RawMessage{table.RevisionKey(gate.Revision): body}
	for key, it := range r.items {
		if !it.Deleted && table.IsPart(key) {
			parts[key] = it.Body
		}
	}
	set, _, err := config.CompileParts(r.name, parts, r.opts)
	if err != nil {
		return err
	}
	gate.Percent = 100
	_, err = config.TryRevision(r.name, parts, set, gate, r.opts)
	return err
}

// compared returns the changes that a revision makes to the table's plans and shared
// limits.
func (r *rolloutArgs) compared(body json.RawMessage) []table.Change {
	parts, err := table.ReadRevision(body)
	if err != nil {
		return nil
	}
	for key, it := range r.items { // a revision does not change tenants
		if table.IsTenant(key) && !it.Deleted {
			parts[key] = it.Body
		}
	}
	return table.Diff(r.items, parts)
}

func rolloutStatus(ctx context.Context, env *environment, r *rolloutArgs) int {
	fmt.Fprintln(env.stdout, cmp.Or(r.printableState(), "the gate was never used"))
	it, latest := r.revision()
	why, err := r.veto(ctx, latest)
	if err != nil {
		return fail(env, err)
	}
	if why != "" {
		fmt.Fprintf(env.stdout, "%s was taken back: %s\n", config.RevisionName(latest), table.Printable(why))
	}
	if it == nil {
		fmt.Fprintln(env.stdout, "no revision is there")
		return exitOK
	}
	number, _ := table.RevisionNumber(it.Key)
	fmt.Fprintf(env.stdout, "%s, by %s at %s, would change:\n", config.RevisionName(number), table.Printable(it.Actor), it.At.Format(time.RFC3339))
	printChanges(env.stdout, r.compared(it.Body), env.coloured())
	return exitDenied
}

// veto returns the reason for which a proxy has vetoed a revision. It returns "" if there
// is no veto or no table of cells is named.
func (r *rolloutArgs) veto(ctx context.Context, revision int64) (why string, err error) {
	if r.cells == "" {
		return "", nil
	}
	vetoes, err := dynamo.NewRegistry(r.aws, r.cells).Vetoes(ctx)
	return vetoes[revision], err
}

// refuseVetoed returns an error for a vetoed revision, unless --despite-veto is set.
func (r *rolloutArgs) refuseVetoed(ctx context.Context, revision int64) error {
	if r.despiteVeto {
		return nil
	}
	why, err := r.veto(ctx, revision)
	if err == nil && why != "" {
		err = fmt.Errorf("%s is not promoted: it was taken back: %s; abort it, or say --despite-veto", config.RevisionName(revision), table.Printable(why))
	}
	return err
}

// errNoRevision is returned for a promote or abort without a revision.
var errNoRevision = errors.New("no revision is there: limitgate rollout start writes one")

func rolloutPromote(ctx context.Context, env *environment, r *rolloutArgs) int {
	it, _ := r.revision()
	if it == nil {
		return r.closeGate(ctx, env)
	}
	number, _ := table.RevisionNumber(it.Key)
	if r.cells == "" && !r.despiteVeto {
		fmt.Fprintln(env.stderr, "limitgate rollout promote: --cells is needed, the table in which proxies say that a revision denies too much, or --despite-veto")
		return exitUsage
	}
	if err := r.refuseVetoed(ctx, number); err != nil {
		return fail(env, err)
	}
	if err := r.check(it.Body, table.Gate{Revision: number}); err != nil {
		return fail(env, err)
	}
	changes := r.compared(it.Body)
	fmt.Fprintln(env.stdout, "for all tenants:")
	r.show(env, changes)
	if r.removesMore(env, changes) || !r.sure(env) {
		return exitError
	}
	r.whole = true                                      // the canary was for all plans and shared limits
	if err := r.refuseVetoed(ctx, number); err != nil { // a veto may have arrived meanwhile
		return fail(env, err)
	}
	// The revision is deleted last. Until then proxies that have it keep it.
	return r.do(ctx, env, append(changes, table.Change{Key: it.Key, Before: it}), &table.Gate{})
}

func rolloutAbort(ctx context.Context, env *environment, r *rolloutArgs) int {
	it, _ := r.revision()
	if it == nil {
		return r.closeGate(ctx, env)
	}
	fmt.Fprintf(env.stdout, "forgets %s, by %s at %s\n", it.Key, table.Printable(it.Actor), it.At.Format(time.RFC3339))
	if !r.sure(env) {
		return exitError
	}
	return r.do(ctx, env, []table.Change{{Key: it.Key, Before: it}}, &table.Gate{})
}

// stateMost bounds the printed state of a gate, in bytes. The state has three numbers,
// but AppConfig may hold anything that was deployed.
const stateMost = 500

// printableState returns the beginning of the gate's state.
func (r *rolloutArgs) printableState() string {
	if len(r.state) <= stateMost {
		return table.Printable(r.state)
	}
	return table.Printable(strings.ToValidUTF8(r.state[:stateMost], "")) + " and so on"
}

// closeGate closes a gate that still names a deleted revision.
func (r *rolloutArgs) closeGate(ctx context.Context, env *environment) int {
	if r.state == "" || strings.Contains(r.state, `"revision":0,`) {
		return fail(env, errNoRevision)
	}
	fmt.Fprintf(env.stdout, "no revision is there, and the gate still names one: %s\n", r.printableState())
	if !r.sure(env) {
		return exitError
	}
	return r.do(ctx, env, nil, &table.Gate{})
}

// sure asks for confirmation, unless --yes is given.
func (r *rolloutArgs) sure(env *environment) bool {
	if r.yes || asked(env, "Do it?") {
		return true
	}
	fmt.Fprintln(env.stderr, "limitgate rollout: nothing is done, because the answer is not y; --yes does it without asking")
	return false
}

// do writes changes of the table, and then the gate.
func (r *rolloutArgs) do(ctx context.Context, env *environment, changes []table.Change, gate *table.Gate) int {
	actor := r.actor
	if actor == "" {
		var err error
		if actor, err = caller(ctx, env, r.aws); err != nil {
			return fail(env, err)
		}
	}
	if err := r.push(ctx, env, changes, actor); err != nil {
		return fail(env, err)
	}
	body, err := json.Marshal(gate)
	if err == nil {
		err = r.deployments.Deploy(ctx, body, r.strategy, "limitgate rollout, by "+actor)
	}
	if err != nil {
		return fail(env, fmt.Errorf("%s written, but the gate could not be changed: run the same command again, or abort: %w", table.Counted(len(changes), "item"), err))
	}
	fmt.Fprintf(env.stdout, "%s written to %s by %s; the gate is now %s\n", table.Counted(len(changes), "item"), r.name, actor, body)
	return exitOK
}
