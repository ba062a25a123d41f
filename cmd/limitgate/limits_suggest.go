package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/limitgate/limitgate/internal/accesslog"
	"github.com/limitgate/limitgate/internal/replay"
)

const suggestAbout = `Writes a first limits file for the traffic of an access log.

Usage: limitgate limits suggest [flags] ACCESS_LOG

The limits are by tenant, operation and address, twice what the busiest bucket had
in a minute, and in the shadow. Comments say which rates would have denied a part of
the requests. The log and the templates are those of limitgate replay.

It exits with 0 when it is done, 1 when the log cannot be read and 64 when the
arguments are wrong.`

func runSuggest(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits suggest", suggestAbout, `limitgate limits suggest --tenant {query:key} access.log.gz > limits.yaml`)
	tenant := fs.String("tenant", replay.DefaultTenant, "`template` of the tenant")
	op := fs.String("op", accesslog.DefaultOp, "`template` of the operation")
	sort := fs.Bool("sort", false, "hold the whole log in memory and sort it, if it is further out of order than 200,000 lines")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if fs.NArg() != 1 {
		fmt.Fprintf(env.stderr, "limitgate limits suggest: %s%s: limitgate limits suggest access.log > limits.yaml\n", wrongArguments(fs, nil, "log"), tookLast(fs, args))
		return exitUsage
	}
	opts := replay.Options{Sort: *sort}
	var err error
	if opts.Tenant, err = accesslog.ParseTemplate(*tenant); err == nil {
		opts.Op, err = accesslog.ParseTemplate(*op)
	}
	if err != nil {
		fmt.Fprintf(env.stderr, "limitgate limits suggest: %s\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	in, size, err := openLog(ctx, env, fs.Arg(0))
	if err != nil {
		return fail(env, err)
	}
	defer func() { _ = in.Close() }()
	progress := accesslog.NewProgress(env.stderr, term.IsTerminal(int(os.Stderr.Fd())), size, time.Now)
	opts.Progress = progress.Update
	var warnings []string
	opts.Warn = func(text string) { warnings = append(warnings, text) }
	var notes strings.Builder
	file, err := replay.Suggest(ctx, in, &notes, opts)
	progress.Finish()
	_, _ = io.WriteString(env.stderr, notes.String())
	printWarnings(env, fs.Name(), warnings)
	if err != nil {
		return fail(env, ofLog(fs.Arg(0), err))
	}
	_, _ = env.stdout.Write(file)
	return exitOK
}
