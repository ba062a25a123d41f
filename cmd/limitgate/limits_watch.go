package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane"
	"github.com/limitgate/limitgate/controlplane/audit"
	"github.com/limitgate/limitgate/controlplane/catalog"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awsclient"
)

const (
	// watchPause is the pause after an error.
	watchPause = time.Second
	// watchDiffers is the number of consecutive digests that must differ before the table
	// is read again: the changes that the first one lacks may still arrive.
	watchDiffers = 2
)

// watchEnds are the signals that end watching. SIGPIPE arrives when the reader of the
// output is gone, and would otherwise leave the queue behind.
var watchEnds = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE}

func runWatch(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits watch", limitsAbout("watch"), "limitgate limits watch --updates arn:aws:sns:eu-central-1:123456789012:limits dynamodb://limits")
	updates := fs.String("updates", "", "ARN of the SNS `topic`, to which a queue is subscribed until the end, or URL of an SQS queue made for this alone")
	renamed(env, fs, "updates-topic", "updates")
	renamed(env, fs, "updates-queue", "updates")
	asJSON := fs.Bool("json", false, "print each change as a line of JSON")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if wrong := wrongArguments(fs, []string{"updates"}, tableArgument); wrong != "" {
		fmt.Fprintf(env.stderr, "limitgate limits watch: %s: limitgate limits watch --updates arn:aws:sns:eu-central-1:123456789012:limits dynamodb://limits\n", wrong)
		return exitUsage
	}
	if err := config.CheckUpdates(*updates); err != nil {
		fmt.Fprintf(env.stderr, "limitgate limits watch: --updates: %s\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(ctx, watchEnds...)
	defer stop()
	aws, err := awsclient.Load(ctx)
	if err != nil {
		return fail(env, err)
	}
	w := &watcher{table: dynamo.NewTable(aws, strings.TrimPrefix(fs.Arg(0), config.LimitsTablePrefix)), stderr: env.stderr}
	w.print = func(e *audit.Entry) { printWatched(env.stdout, e, env.coloured()) }
	if *asJSON {
		w.print = func(e *audit.Entry) { _ = json.NewEncoder(env.stdout).Encode(e) }
	}
	if dynamo.IsQueue(*updates) {
		w.updates = dynamo.OpenQueue(aws, *updates)
		return w.watch(ctx, env, fs.Arg(0))
	}
	subscription := dynamo.NewSubscription(aws, *updates)
	w.updates = subscription
	// An interrupted subscription would leave its queue or subscription behind.
	opening, cancel := context.WithTimeout(context.WithoutCancel(ctx), awsclient.Timeout)
	defer cancel()
	if err := subscription.Open(opening); err != nil {
		return fail(env, err)
	}
	code := w.watch(ctx, env, fs.Arg(0))
	closing, cancel := context.WithTimeout(context.Background(), awsclient.Timeout)
	defer cancel()
	if err := subscription.Close(closing); err != nil {
		return fail(env, err)
	}
	return code
}

// watcher prints the changes of the items of a table.
type watcher struct {
	table     catalog.Scanner
	updates   catalog.Updates
	print     func(*audit.Entry)
	stderr    io.Writer
	known     map[string]table.Item
	missed    bool   // the table has to be read again
	differing int    // consecutive digests that differed
	lastError string // the last error that was printed
}

// watch reads the table and prints changes until ctx ends.
func (w *watcher) watch(ctx context.Context, env *environment, name string) int {
	items, err := w.table.Scan(ctx)
	if ctx.Err() != nil {
		return exitOK
	}
	if err != nil {
		return fail(env, err)
	}
	if other := otherKey(items); other != "" {
		fmt.Fprintf(env.stderr, "limitgate limits watch: %s\n", otherTable(name, other))
		return exitError
	}
	w.known = map[string]table.Item{}
	for i := range items {
		if items[i].IsLimits() {
			w.known[items[i].Key] = items[i]
		}
	}
	fmt.Fprintf(w.stderr, "limitgate: watching %s, %d items\n", name, w.digest().Count)
	for ctx.Err() == nil {
		if err := w.next(ctx); err != nil && ctx.Err() == nil {
			w.complain(err)
			select {
			case <-ctx.Done():
			case <-time.After(watchPause):
			}
		}
	}
	return exitOK
}

// next waits for messages and prints the changes in them.
func (w *watcher) next(ctx context.Context) error {
	if w.missed || w.differing >= watchDiffers {
		items, err := w.table.Scan(ctx)
		if err != nil {
			return err
		}
		w.missed, w.differing = false, 0
		w.take(items)
	}
	messages, bad, err := w.updates.Receive(ctx)
	for _, m := range messages {
		if m.Item != nil {
			w.take([]table.Item{*m.Item})
		}
		if m.Digest != nil && *m.Digest == w.digest() {
			w.differing = 0
		} else if m.Digest != nil {
			w.differing++
		}
	}
	if errors.Is(err, table.ErrMissed) { // the queue was replaced by a new one
		w.missed = true
		return nil
	}
	if err == nil && bad > 0 {
		err = fmt.Errorf("%d messages are invalid", bad)
	}
	if err == nil {
		w.lastError = ""
	}
	return err
}

// take prints the items that are newer than the known ones.
func (w *watcher) take(items []table.Item) {
	for i := range items {
		it := &items[i]
		was, ok := w.known[it.Key]
		if !it.IsLimits() || ok && it.Version <= was.Version {
			continue
		}
		e := &audit.Entry{Key: it.Key, Actor: it.Actor, Version: it.Version, At: it.At, After: it}
		if ok {
			e.Before = &was
		}
		w.print(e)
		w.known[it.Key] = *it
	}
}

// printWatched prints a change. One that leaves an item as it was follows a change that the watch did not see.
func printWatched(w io.Writer, e *audit.Entry, colour bool) {
	printEntry(w, e, colour)
	c := changeOf(e)
	if c.Before == nil || c.After == nil || !bytes.Equal(c.Before.Body, c.After) {
		return
	}
	reason := ""
	if e.Actor == controlplane.Actor {
		reason = ": a change by hand was reverted"
	}
	fmt.Fprintf(w, "  the same item as before%s\n", reason)
}

func (w *watcher) digest() (d table.Digest) {
	for _, it := range w.known {
		d.Add(&it)
	}
	return d
}

// complain prints an error, unless it was the last one printed.
func (w *watcher) complain(err error) {
	text := requestID.ReplaceAllString(awsclient.Explain(err), "")
	if text != w.lastError {
		fmt.Fprintf(w.stderr, "limitgate: %s; retrying\n", table.Printable(text))
	}
	w.lastError = text
}

// requestID matches the part of an error of AWS that differs with each call.
var requestID = regexp.MustCompile(`RequestID: [^,]*, `)
