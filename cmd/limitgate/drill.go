package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/drill"
	"github.com/limitgate/limitgate/limit"
)

const drillAbout = `Practises outages that operators should know: what to do, what to see, how long it may
take, and how to end it.

Usage:

	limitgate drill
	limitgate drill NAME
	limitgate drill failover|fail-open --run --redis HOST:PORT [--addr ADDRESS] [--admin ADDRESS]

Without a name it lists the drills, and with one it prints its steps. --run makes the
outage: it refuses a store without the key lg:test-store, which
SET lg:test-store yes EX 3600 writes. It sends checks for the tenant drill to one
limitgate, holds the masters back by CLIENT PAUSE, which ends by itself, and for
failover promotes a replica. It prints a line a second, and a verdict. Ctrl-C ends the
outage at once.

It exits with 0 when all is printed, or every check got a decision and the store came
back in time; 1 when not, and 64 when the arguments are wrong.`

// drillFlags are the flags of drill.
type drillFlags struct {
	clientFlags
	settings               config.Settings
	checkRedis             func() error
	run, asJSON            bool
	addr, admin            string
	rate                   int
	outage, within, onWait time.Duration
}

// The bounds of a run.
const (
	mostDrillRate   = 1000
	mostDrillOutage = time.Minute
)

// define defines the flags.
func (f *drillFlags) define(env *environment, fs *flag.FlagSet) {
	fs.BoolVar(&f.asJSON, "json", false, "print JSON; with --run an object a second, and then the verdict")
	fs.BoolVar(&f.run, "run", false, "make the outage, on a store with the key lg:test-store")
	f.clientFlags.defineAddr(env, fs, &f.addr)
	fs.StringVar(&f.admin, "admin", "", "its admin `address`, for the state of its breakers in each line")
	fs.IntVar(&f.rate, "rate", 100, "`checks` a second, 1000 at most")
	fs.DurationVar(&f.outage, "outage", 5*time.Second, "how long the outage lasts, from 1s to 1m")
	fs.DurationVar(&f.within, "within", 10*time.Second, "how long the store may take to decide again, from 1s to 1m")
	fs.DurationVar(&f.onWait, "timeout", 5*time.Second, "how long to wait for an answer")
	f.clientFlags.define(fs)
	f.checkRedis = config.RedisFlags(fs, &f.settings)
	fs.Lookup("redis").Usage = "with --run the store, by the nodes that --redis of that limitgate names"
}

func runDrill(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "drill", drillAbout, "limitgate drill failover", "limitgate drill fail-open --run --redis 127.0.0.1:6379 --admin 127.0.0.1:9180")
	var f drillFlags
	f.define(env, fs)
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	for _, w := range f.settings.Warnings {
		fmt.Fprintf(env.stderr, "limitgate drill: %s\n", w)
	}
	d, err := f.check(fs)
	if err != nil {
		fmt.Fprintf(env.stderr, "limitgate drill: %s; limitgate drill --help says more\n", err)
		return exitUsage
	}
	passed := true
	if f.run {
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
		passed, err = f.practise(ctx, env, d.Name)
	} else {
		err = f.print(env, d)
	}
	if err != nil {
		return fail(env, fmt.Errorf("drill: %w", err))
	}
	if !passed {
		return exitError
	}
	return exitOK
}

// check returns the drill that is named, or nil without a name, and an error for arguments that
// are wrong.
func (f *drillFlags) check(fs *flag.FlagSet) (*drill.Drill, error) {
	var names []string
	for _, d := range drill.All() {
		names = append(names, d.Name)
	}
	switch fs.NArg() {
	case 0:
		if f.run {
			return nil, errors.New("--run needs the name of a drill: failover or fail-open")
		}
		return nil, f.checkPrinting(fs)
	case 1:
	default:
		return nil, fmt.Errorf("%s is one argument too many", config.Quote(fs.Arg(1)))
	}
	d, found := drill.Find(fs.Arg(0))
	if !found {
		return nil, fmt.Errorf("there is no drill %s%s; there are %s", config.Quote(fs.Arg(0)), limit.DidYouMean(fs.Arg(0), names), strings.Join(names, ", "))
	}
	if !f.run {
		return &d, f.checkPrinting(fs)
	}
	if !d.Runs {
		return nil, fmt.Errorf("%s is practised by hand: leave out --run for its steps", d.Name)
	}
	return &d, f.checkRun()
}

// checkPrinting returns an error for a flag that has no effect without --run.
func (*drillFlags) checkPrinting(fs *flag.FlagSet) (err error) {
	fs.Visit(func(g *flag.Flag) {
		if g.Name != "json" && g.Name != "run" {
			err = fmt.Errorf("--%s has no effect without --run", g.Name)
		}
	})
	return err
}

// checkRun returns an error for values that a run refuses.
func (f *drillFlags) checkRun() error {
	between := func(name string, d, most time.Duration) error {
		if d < time.Second || d > most {
			return fmt.Errorf("--%s is %s: want %s to %s", name, config.ShowDuration(d), config.ShowDuration(time.Second), config.ShowDuration(most))
		}
		return nil
	}
	if err := f.checkRedis(); err != nil {
		return err
	}
	switch {
	case f.settings.RedisSentinel.Master != "":
		return errors.New("--redis-sentinel is not for drills: name the master by --redis")
	case !f.settings.UsesRedis():
		return errors.New("--run needs the store: --redis HOST:PORT, as the limitgate names it")
	case f.rate < 1 || f.rate > mostDrillRate:
		return fmt.Errorf("--rate is %d: want 1 to %d", f.rate, mostDrillRate)
	case f.onWait <= 0:
		return errors.New("--timeout must be above zero")
	}
	if err := between("outage", f.outage, mostDrillOutage); err != nil {
		return err
	}
	return between("within", f.within, mostDrillOutage)
}

// print prints a drill, or the list of all.
func (f *drillFlags) print(env *environment, d *drill.Drill) error {
	switch {
	case f.asJSON && d == nil:
		return writeJSON(env.stdout, drill.All())
	case f.asJSON:
		return writeJSON(env.stdout, d)
	case d == nil:
		return drill.WriteList(env.stdout)
	}
	return d.Write(env.stdout)
}
