package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/term"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/run"
)

// A runningCommand asks a running limitgate and prints its reply as a table.
type runningCommand struct {
	name     string // of the subcommand
	about    string
	examples []string
	// words returns the command for the arguments, or an error that says what would be right.
	words func(args []string) ([]any, error)
	print func(w io.Writer, args []string, reply any)
	// warn returns the warnings in the first reply; nil is none.
	warn func(reply any) []string
}

const runningAbout = `

It exits with 0 when it is done, 1 when the limitgate does not answer or refuses,
and with 64 when the arguments are wrong.`

var explainRunning = runningCommand{
	name: "explain",
	about: `Asks a running limitgate which limits one request meets, and why.

Usage: limitgate explain [flags] TENANT OP IP [COST] [DIM NAME VALUE [DIM NAME VALUE ...]]

It takes nothing. limitgate limits explain does the same for a limits file.` + runningAbout,
	examples: []string{`limitgate explain acme "POST /v1/payments" 203.0.113.7`},
	words: func(args []string) ([]any, error) {
		if err := notAFile(args, "explain FILE TENANT OP IP"); err != nil {
			return nil, err
		}
		if _, err := commands.ParseRequest(ownTenantNamed(args)); err != nil {
			return nil, err
		}
		return wordsOf("RL.EXPLAIN", args), nil
	},
	print: func(w io.Writer, args []string, reply any) { explanationOfReply(args, reply).print(w) },
	warn:  warningsOfReply,
}

var limitsRunning = runningCommand{
	name: "limits",
	about: `Asks a running limitgate for the limits in force, all of them or those of a tenant.

Usage: limitgate limits --addr ADDRESS [flags] [TENANT]` + runningAbout,
	examples: []string{"limitgate limits --addr 127.0.0.1:6380 acme"},
	words: func(args []string) ([]any, error) {
		if err := notAFile(args, "lint FILE"); err != nil {
			return nil, err
		}
		if len(args) > 1 {
			return nil, errors.New("one tenant at most can be named")
		}
		return wordsOf("RL.LIMITS", args), nil
	},
	print: printLimits,
	warn:  warningsOfReply,
}

var topRunning = runningCommand{
	name: "top",
	about: `Asks a running limitgate for the buckets and operations of the last seconds: those with
the most checks, those that deny most, and those of shadow limits that would.

Usage: limitgate top [flags] [NUMBER]

The rates are those of that limitgate alone, and estimates where it decides more than some
thousand checks a second.` + runningAbout,
	examples: []string{"limitgate top 20", "limitgate top --every 1s"},
	words:    rowsOf("RL.TOP"),
	print:    printTop,
}

var deniedRunning = runningCommand{
	name: "denied",
	about: `Asks a running limitgate for its last denials, and those that a shadow limit would have
made: which limit, tenant and operation, whether limits on trial decided, and when the
client may try again.

Usage: limitgate denied [flags] [NUMBER]

They are a sample: a hundred a second and up to fifty more at once, and one a second of each
limit, tenant and operation. Addresses are hashed.` + runningAbout,
	examples: []string{"limitgate denied 20"},
	words:    rowsOf("RL.DENIED"),
	print:    printDenied,
}

var shardsRunning = runningCommand{
	name: "shards",
	about: `Asks a running limitgate for the masters of its store, and whether it uses them.

Usage: limitgate shards [flags]

BREAKER is open once several checks in a row have failed, or half of those of a second: the
backstop decides then without asking, and NEXT_PROBE_MS is the time to the next try.
FAILING_MS is the time since checks fail, 0 while none does. ERROR is that of a ping now,
also where no check came.` + runningAbout,
	examples: []string{"limitgate shards"},
	words: func(args []string) ([]any, error) {
		if len(args) > 0 {
			return nil, fmt.Errorf("%.64q is one argument too many", args[0])
		}
		return []any{"RL.CONFIG", "SHARDS"}, nil
	},
	print: printShards,
}

// isHostPort reports whether an argument is the address or the name of a host, with a port.
func isHostPort(arg string) bool {
	host, port, err := net.SplitHostPort(arg)
	return err == nil && isPort(port) && hostChars.MatchString(host)
}

// mistakeOrAddr returns a mistake in the arguments of a command that asks a running limitgate: of an address in the place of the first one,
// without --addr, how to name it. Where a tenant may stand, a name without a dot, such as org:42, is more likely that of one.
func mistakeOrAddr(mistake error, fs *flag.FlagSet) error {
	addr := fs.Arg(0)
	if mistake == nil || len(flagsWithoutValue(fs, []string{"addr"})) == 0 || !isHostPort(addr) {
		return mistake
	}
	host, _, _ := net.SplitHostPort(addr)
	ofTenant := slices.Contains([]string{"check", "explain", "limits"}, fs.Name())
	if ofTenant && host != "localhost" && !strings.ContainsAny(host, ".:") {
		return mistake
	}
	return fmt.Errorf("the address of a limitgate is a flag: --addr %.64s", addr)
}

// notAFile returns an error if the name of a limits file stands in the place of the tenant, and names
// the command of limits that reads one.
func notAFile(args []string, command string) error {
	if len(args) > 0 && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(args[0])) {
		return fmt.Errorf("a running limitgate is asked here; for a file: limitgate limits %s", command)
	}
	return nil
}

// ownTenantNamed returns the arguments of a request with a name in place of -, which stands for
// the tenant of the user: only the server knows it.
func ownTenantNamed(args []string) []string {
	if len(args) == 0 || args[0] != "-" {
		return args
	}
	return append([]string{"tenant"}, args[1:]...)
}

// wordsOf returns the words of a command of the server.
func wordsOf(name string, args []string) []any {
	words := []any{name}
	for _, a := range args {
		words = append(words, a)
	}
	return words
}

// rowsOf returns the words of a command of the server with an optional number of rows.
func rowsOf(name string) func(args []string) ([]any, error) {
	return func(args []string) ([]any, error) {
		if len(args) == 0 {
			return []any{name}, nil
		}
		if n, err := strconv.Atoi(args[0]); err != nil || n < 1 || n > 100 || len(args) > 1 {
			return nil, errors.New("one number from 1 to 100 says how many rows to list, which are of all tenants")
		}
		return []any{name, args[0]}, nil
	}
}

// runningFlags are the flags of a command that may ask a running limitgate again and again.
type runningFlags struct {
	clientFlags
	addr           string
	asJSON         bool
	timeout, every time.Duration
}

func (f *runningFlags) define(env *environment, fs *flag.FlagSet, every time.Duration, everyHelp string) {
	f.clientFlags.defineAddr(env, fs, &f.addr)
	fs.BoolVar(&f.asJSON, "json", false, "print the reply as JSON")
	fs.DurationVar(&f.timeout, "timeout", 10*time.Second, "how long to wait for an answer")
	fs.DurationVar(&f.every, "every", every, everyHelp)
	f.clientFlags.define(fs)
}

// checkEvery returns a mistake if a limitgate would be asked too often.
func checkEvery(every time.Duration) error {
	return checkBetween("every", every, 10*time.Millisecond, 24*time.Hour)
}

// run is the subcommand.
func (c runningCommand) run(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, c.name, c.about, c.examples...)
	var flags runningFlags
	flags.define(env, fs, 0, "ask again and again, with so much time between, until Ctrl-C; 0 asks once")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	words, err := c.words(fs.Args())
	if err := mistakeOrAddr(err, fs); err != nil {
		fmt.Fprintf(env.stderr, "limitgate %s: %s; limitgate %s --help says more\n", c.name, err, c.name)
		return exitUsage
	}
	client, err := flags.newClient(flags.addr, flags.timeout, 3) // the maps of RESP3 have names
	if err == nil && flags.every != 0 {
		err = checkEvery(flags.every)
	}
	if err != nil {
		return fail(env, fmt.Errorf("%s: %w", c.name, err))
	}
	defer func() { _ = client.Close() }()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	fresh := flags.every > 0 && !flags.asJSON && term.IsTerminal(int(os.Stdout.Fd()))
	warn, retries := c.warn, retrier{env: env, name: c.name, flags: &flags}
	for {
		reply, err := c.ask(ctx, client, flags.addr, flags.timeout, words)
		if !retries.retry(ctx, err) {
			return fail(env, fmt.Errorf("%s: %w", c.name, explainDial(flags.addr, err)))
		}
		if err == nil && warn != nil {
			printWarnings(env, c.name, warn(reply))
			warn = nil
		}
		if err == nil {
			err = c.show(env.stdout, fs.Args(), reply, flags.asJSON, fresh)
			if err != nil && ctx.Err() == nil {
				return fail(env, fmt.Errorf("%s: print reply: %w", c.name, err))
			}
		}
		if flags.every <= 0 || !run.Sleep(ctx, flags.every) {
			return exitOK
		}
	}
}

// printWarnings prints warnings about the arguments of a command.
func printWarnings(env *environment, command string, warnings []string) {
	for _, w := range warnings {
		fmt.Fprintf(env.stderr, "limitgate %s: %s (warning)\n", command, w)
	}
}

// ask returns the reply to the command, with names as keys of its maps.
func (c runningCommand) ask(ctx context.Context, client *redis.Client, addr string, timeout time.Duration, words []any) (reply any, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	reply, err = client.Do(ctx, words...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	named := withNames(reply)
	_, isMap := named.(map[string]any)
	if _, isList := reply.([]any); !isMap && !isList && reply != nil {
		return nil, fmt.Errorf("the reply is no table: is %s a limitgate?", addr)
	}
	return named, nil
}

// show prints a reply, on an empty screen if fresh is set.
func (c runningCommand) show(w io.Writer, args []string, reply any, asJSON, fresh bool) error {
	if asJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(reply)
	}
	page := page{width: widthOf(w)}
	if fresh {
		page.WriteString("\x1b[H\x1b[2J") // one write, so that the screen does not flicker
	}
	c.print(&page, args, reply)
	_, err := w.Write(page.Bytes())
	return err
}
