// Command limitgate is the rate limiter. `limitgate serve` answers RL.CHECK to any Redis
// client; the other subcommands help people to use it.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	_ "time/tzdata" // calendar windows must not depend on the machine

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// Exit codes.
const (
	exitOK     = 0  // done; of check: admitted
	exitError  = 1  // a failure, printed on stderr
	exitDenied = 2  // of check: denied
	exitUsage  = 64 // the arguments are wrong
)

// subcommand is a command of limitgate.
type subcommand struct {
	name    string
	summary string
	run     func(ctx context.Context, env *environment, args []string) int
	// under returns the commands that follow its name; nil is none.
	under func() []subcommand
}

// environment is the part of the process environment that a subcommand uses.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string
	args           []string      // of the command line
	flags          *flag.FlagSet // of the command; nil before they are parsed
	// manual, unless nil, receives the help of a command in place of stdout.
	manual *manual
}

// lookup returns the value of a variable of the environment, the first one if it is there twice.
func (env *environment) lookup(name string) string {
	for _, v := range env.environ {
		if n, value, found := strings.Cut(v, "="); found && n == name {
			return value
		}
	}
	return ""
}

func subcommands() []subcommand {
	return []subcommand{
		{name: "serve", summary: "answer RL.CHECK and its family to Redis clients", run: runServe},
		{name: "envoy", summary: "answer Envoy's rate limit service as envoyproxy/ratelimit is configured", run: runEnvoy},
		{name: "check", summary: "ask a running limitgate for one decision", run: runCheck},
		{name: "explain", summary: "ask a running limitgate which limits a request meets, and why", run: explainRunning.run},
		{name: "top", summary: "ask a running limitgate for the buckets asked for most", run: topRunning.run},
		{name: "stats", summary: "print a line a second of what a running limitgate decides", run: runStats},
		{name: "denied", summary: "ask a running limitgate for its last denials", run: deniedRunning.run},
		{name: "shards", summary: "ask a running limitgate for the masters of its store", run: shardsRunning.run},
		{name: "doctor", summary: "say what a store can do, and how limitgate will use it", run: runDoctor},
		{name: "drill", summary: "practise an outage: what to do, what to see, and on a test store the outage itself", run: runDrill},
		{name: "health", summary: "ask whether the limitgate of this machine is ready", run: runHealth},
		{name: "limits", summary: "lint and explain limits files, and bring them into tables and back", run: runLimits, under: limitsCommands},
		{name: "edge", summary: "render limits as CloudFormation for WAF, CloudFront and API Gateway", run: runEdge, under: edgeCommands},
		{name: "audit", summary: "show every change that was made to a tenant of a table", run: runAudit},
		{name: "cells", summary: "show the cells that share the limits of a table, and change them", run: runCells, under: cellsCommands},
		{name: "controlplane", summary: "carry changes of a table of limits to all proxies", run: runControlPlane},
		{name: "rollout", summary: "try limits of a table on some tenants first", run: runRollout, under: rolloutCommands},
		{name: "aws-check", summary: "check in an AWS account what only AWS can show of limits as data", run: runAWSCheck},
		{name: "bypass", summary: "make keys, and tokens that let requests pass the limits", run: runBypass, under: bypassCommands},
		{name: "hash-password", summary: "make a password for the file of users, and its hash", run: runHashPassword},
		{name: "replay", summary: "show what limits would have done to the traffic of an access log", run: runReplay},
		{name: "plan", summary: "plan the capacity for a load, and print the monthly bill", run: runPlan},
		{name: "completion", summary: "print the completion of commands for a shell", run: runCompletion, under: completionCommands},
		{name: "man", summary: "print the manual page", run: runMan},
		{name: "version", summary: "print the version", run: runVersion},
	}
}

// quietRedis keeps the Redis client from writing to stderr in its own format. This
// program's errors and log report what matters.
type quietRedis struct{}

func (quietRedis) Printf(context.Context, string, ...any) {}

func main() {
	redis.SetLogger(quietRedis{})
	env := &environment{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ()}
	os.Exit(execute(context.Background(), env, os.Args[1:]))
}

// execute is the program without its process.
func execute(ctx context.Context, env *environment, args []string) int {
	if len(args) == 0 {
		usage(env.stderr)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		if args[0] != "help" || len(args) == 1 || args[1] == "help" || strings.HasPrefix(args[1], "-") {
			usage(env.stdout)
			return exitOK
		}
		if wrong := unknownCommand(args[1], args[2:]); wrong != "" {
			fmt.Fprintf(env.stderr, "limitgate %s: %s; limitgate help %[1]s lists them\n", args[1], wrong)
			return exitUsage
		}
		args = append(args[1:len(args):len(args)], "--help")
	case "-v", "-version", "--version":
		return runVersion(ctx, env, nil)
	}
	if len(args) == 2 && args[1] == "help" {
		args = []string{args[0], "--help"}
	}
	env.args = args
	for _, c := range subcommands() {
		if c.name == args[0] {
			return c.run(ctx, env, args[1:])
		}
	}
	if isServeFlag(args[0]) {
		meant := commandFirst(args)
		for i, arg := range meant {
			if strings.Contains(arg, "@") { // the text before it may have a password
				meant[i] = arg[:max(0, strings.Index(arg, "://"))] + "..."
			}
		}
		fmt.Fprintf(env.stderr, "limitgate: a command is missing in front of %s; did you mean limitgate %.200s?\n", config.Quote(args[0]), table.Printable(strings.Join(meant, " ")))
		return exitUsage
	}
	if strings.HasPrefix(args[0], "-") {
		if meant := config.MeantFlag(args[0], serveFlags()); meant != "" {
			fmt.Fprintf(env.stderr, "limitgate: a command is missing in front of %s; did you mean limitgate serve %s?\n", config.Quote(args[0]), meant)
			return exitUsage
		}
	}
	if len(args) == 1 && strings.Contains(missingFlag(args[0]), "--limits") {
		fmt.Fprintf(env.stderr, "limitgate: a command is missing in front of %s; did you mean limitgate serve --limits %.200s?\n", config.Quote(args[0]), args[0])
		return exitUsage
	}
	var names []string
	for _, c := range subcommands() {
		names = append(names, c.name)
	}
	fmt.Fprintf(env.stderr, "limitgate: there is no command %.64q%s\n", args[0], cmp.Or(commandMeant(args[0], names), "; limitgate help lists them"))
	return exitUsage
}

// commandFirst returns arguments that begin with a flag of serve with the command in front: that which stands behind flags, or
// serve.
func commandFirst(args []string) []string {
	for i := 1; i < len(args); i++ {
		isCommand := slices.ContainsFunc(subcommands(), func(c subcommand) bool { return c.name == args[i] })
		if isCommand && !(isFlag(args[i-1]) && !strings.Contains(args[i-1], "=")) {
			return slices.Concat(args[i:i+1], args[:i], args[i+1:])
		}
	}
	return slices.Concat([]string{"serve"}, args)
}

// serveFlags returns the names of the flags of serve.
func serveFlags() []string {
	var names []string
	for _, f := range config.Flags() {
		names = append(names, f.Name)
	}
	return names
}

// isServeFlag reports whether an argument is a flag of serve.
func isServeFlag(arg string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return isFlag(arg) && slices.Contains(serveFlags(), "--"+name)
}

// otherCommands are words that mean a command of another name, or one of a running limitgate.
var otherCommands = map[string]string{
	"start": "did you mean serve?", "run": "did you mean serve?", "server": "did you mean serve?", "up": "did you mean serve?",
	"reload": "a running limitgate loads its limits again on RL.CONFIG RELOAD by a Redis client, or on SIGHUP",
	"reset":  "a running limitgate resets a bucket on RL.RESET tenant limit_id by a Redis client",
	"peek":   "did you mean check --peek?",
	"stop":   "a running limitgate ends on SIGTERM, after the decisions under way",
	"config": "limitgate serve --print-config prints the settings", "settings": "limitgate serve --print-config prints the settings",
	"metrics": "a running limitgate serves them at its --admin address, /metrics",
	"deny":    "did you mean denied?", "denials": "did you mean denied?", "ask": "did you mean check?",
	"status": "did you mean health or stats?", "ready": "did you mean health?", "ping": "did you mean health?",
	"validate": "did you mean limits lint?", "verify": "did you mean limits lint?", "test": "did you mean limits lint?",
	"capacity": "did you mean plan?", "tour": "make tour runs it, in a clone of the project",
	"password": "did you mean hash-password?", "users": "did you mean hash-password?",
}

// commandMeant returns the command that a word most likely means, behind "; ", or "" if there is none.
func commandMeant(word string, names []string) string {
	lower := strings.ToLower(word)
	if other, found := otherCommands[lower]; found {
		return "; " + other
	}
	for _, c := range subcommands() {
		if c.under != nil && slices.ContainsFunc(c.under(), func(c subcommand) bool { return c.name == lower }) {
			return "; did you mean " + c.name + " " + lower + "?"
		}
	}
	return limit.DidYouMean(word, names)
}

func usage(w io.Writer) {
	fmt.Fprint(w, `Limitgate is a rate limiter that any Redis client can ask:
RL.CHECK tenant op ip cost, decided on a Redis Cluster or in memory.

Usage:

	limitgate COMMAND [arguments]

Commands:

`)
	for _, c := range subcommands() {
		fmt.Fprintf(w, "	%-13s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, `
Example:

	limitgate serve &
	redis-cli -p 6380 RL.CHECK acme "POST /v1/payments" 203.0.113.7 1

limitgate help COMMAND says more about a command, and what it exits with.
`)
}

// newFlags returns a flag set with a help text: a description of the command, its usage
// and an example, then the flags.
func newFlags(env *environment, name, about string, examples ...string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors and help are printed by parseFlags
	fs.Usage = func() {
		if env.manual != nil {
			*env.manual = manual{about: about, examples: examples, flags: flagsOf(fs)}
			return
		}
		fmt.Fprintf(env.stdout, "%s\n\nExample:\n\n\t%s\n", about, strings.Join(examples, "\n\t"))
		heading := "\nFlags:\n\n"
		fs.VisitAll(func(f *flag.Flag) {
			if f.Usage == "" { // an earlier name
				return
			}
			fmt.Fprint(env.stdout, heading)
			heading = ""
			printFlag(env.stdout, f)
		})
	}
	return fs
}

// renamed defines an earlier name of a flag, which still works and prints a warning.
func renamed(env *environment, fs *flag.FlagSet, old, name string) {
	given := ""
	set := func(text string) error {
		if v := fs.Lookup(name).Value.String(); v != fs.Lookup(name).DefValue && v != text && v != given {
			return fmt.Errorf("--%s has another value", name)
		}
		given = text
		fmt.Fprintf(env.stderr, "limitgate %s: --%s is called --%s now\n", fs.Name(), old, name)
		return fs.Set(name, text)
	}
	if b, ok := fs.Lookup(name).Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
		fs.BoolFunc(old, "", set)
		return
	}
	fs.Func(old, "", set)
}

// printFlag prints a flag in the format of serve's help.
func printFlag(w io.Writer, f *flag.Flag) {
	argument, help := argumentOf(f)
	if argument != "" {
		argument = " " + argument
	}
	fmt.Fprintf(w, "  %-34s %s", "--"+f.Name+argument, help)
	if f.DefValue != "" && f.DefValue != "false" {
		fmt.Fprintf(w, " (default %s)", f.DefValue)
	}
	fmt.Fprintln(w)
}

// argumentOf returns the name of the value of a flag, empty if it needs none, and its effect.
func argumentOf(f *flag.Flag) (argument, help string) {
	argument, help = flag.UnquoteUsage(f)
	if v, ok := f.Value.(interface{ Argument() string }); ok {
		return v.Argument(), help
	}
	if strings.Contains(argument, "|") { // choices, as they are written
		return argument, help
	}
	return strings.ToUpper(argument), help
}
