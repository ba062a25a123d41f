// Command limitgate-bench measures Limitgate beside yardsticks that anyone can install,
// and reports which of its goals are met.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/limitgate/limitgate/bench"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // a case failed, or nothing could be measured
	exitUsage  = 64
)

const about = `Measures Limitgate beside yardsticks that anyone can install: redis-server and
redis-benchmark, a script sent straight to Redis, and a library. It starts all
servers itself and ends them again. A goal that is missed is no failure: the
table says so.

Usage:

	limitgate-bench [flags] [CASE ...]

A CASE with a trailing * stands for all that begin so.

Example:

	limitgate-bench --quick
	limitgate-bench --json bench.json redis-p16 'hot-*'
	limitgate-bench --from bench.json --docs docs

Flags:

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// The first signal stops the servers. The handler is then gone, so a second signal
	// ends this program at once.
	context.AfterFunc(ctx, stop)
	if len(os.Args) == 2 && os.Args[1] == bench.LibraryCommand {
		os.Exit(failure(bench.ServeLibrary(ctx, os.Stdin, os.Stdout)))
	}
	os.Exit(run(ctx, os.Args[1:]))
}

// failure prints err, if it is not nil, and returns the exit code.
func failure(err error) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(os.Stderr, "limitgate-bench:", err)
	return exitFailed
}

// arguments are the parsed command line.
type arguments struct {
	options          bench.Options
	from, json, docs string
	list             bool
}

func parse(args []string) (*arguments, error) {
	a := new(arguments)
	fs := flag.NewFlagSet("limitgate-bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors and help are printed by run
	fs.BoolVar(&a.options.Quick, "quick", false, "take about a minute, to see whether anything is out of order")
	fs.StringVar(&a.options.Limitgate, "limitgate", "", "the `binary` to measure; the one beside this program unless given")
	fs.IntVar(&a.options.Rounds, "rounds", 0, "how `many` rounds each side is measured; 5, or 3 when quick")
	fs.DurationVar(&a.options.Round, "round", 0, "how `long` a round is; 1.2s, or 150ms when quick")
	fs.StringVar(&a.json, "json", "", "`file` to write the report to, for machines")
	fs.StringVar(&a.docs, "docs", "", "`folder` to write performance-tables.md to, and the main figures into its performance.md")
	fs.StringVar(&a.from, "from", "", "`file` written by --json to read the report from, instead of measuring")
	fs.StringVar(&a.options.Profiles, "profiles", "", "`folder` for a CPU profile of the proxy in each case that compares")
	fs.StringVar(&a.options.RedisCell, "redis-cell", "", "`file` of the module of redis-cell, for the cases redis-cell-*")
	fs.StringVar(&a.options.EnvoyRatelimit, "envoy-ratelimit", "", "`file` of the program of envoyproxy/ratelimit, to run the cases rls-* beside it")
	fs.BoolVar(&a.list, "list", false, "name the cases and end")
	err := fs.Parse(args)
	for err == nil && fs.NArg() > 0 { // flags may follow cases
		a.options.Only = append(a.options.Only, fs.Arg(0))
		err = fs.Parse(fs.Args()[1:])
	}
	if errors.Is(err, flag.ErrHelp) {
		fmt.Print(about)
		fs.SetOutput(os.Stdout)
		fs.PrintDefaults()
	}
	return a, err
}

// run is the program without its process.
func run(ctx context.Context, args []string) int {
	a, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(os.Stderr, "limitgate-bench:", err)
		return exitUsage
	case a.list:
		for _, c := range bench.Cases() {
			fmt.Printf("%-28s %s%s\n", c.Name, c.Title, aside(c))
		}
		return exitOK
	}
	report, err := a.report(ctx)
	if report != nil && len(report.Cases) > 0 {
		report.WriteText(os.Stdout, term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "")
	}
	if err != nil {
		return failure(err)
	}
	err = writeFile(a.json, report.WriteJSON)
	if a.docs != "" {
		err = errors.Join(err, report.WriteDocs(a.docs))
	}
	if failed := report.Failed(); failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d cases failed", failed, len(report.Cases)))
	}
	return failure(err)
}

// aside returns a mark for a case that runs only if it is named.
func aside(c bench.Case) string {
	if c.Aside {
		return " (only when named)"
	}
	return ""
}

// report reads the report from a file, or runs the benchmark.
func (a *arguments) report(ctx context.Context) (*bench.Report, error) {
	if a.from != "" {
		file, err := os.Open(a.from)
		if err != nil {
			return nil, fmt.Errorf("read report: %w", err)
		}
		defer func() { _ = file.Close() }()
		return bench.ReadReport(file)
	}
	if a.options.Limitgate == "" {
		program, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find limitgate: %w", err)
		}
		a.options.Limitgate = filepath.Join(filepath.Dir(program), "limitgate")
	}
	a.options.Progress, a.options.Live = os.Stderr, term.IsTerminal(int(os.Stderr.Fd()))
	return bench.Run(ctx, a.options)
}

// writeFile writes a file completely or not at all. It does nothing if name is empty.
func writeFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	var text strings.Builder
	if err := write(&text); err != nil {
		return err
	}
	if err := os.WriteFile(name, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
