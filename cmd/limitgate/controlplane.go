package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/limitgate/limitgate/audit"
	"github.com/limitgate/limitgate/controlplane"
	"github.com/limitgate/limitgate/dynamo"
	"github.com/limitgate/limitgate/table"
)

// controlPlaneActor is who puts back what was written by hand.
const controlPlaneActor = "control-plane"

const controlPlaneAbout = `Carries changes of a table of limits to all proxies, until it is told to end.

Usage: limitgate controlplane --table TABLE --topic ARN --leases TABLE [--audit-bucket BUCKET]

It reads the table's stream, and publishes each changed item to the topic that
the proxies are subscribed to. Several may run: they share the work by leases in
a table of their own, whose key is pk, and go on where another one ended. With
--audit-bucket each change is written down for limitgate audit.

AWS is found as its other tools find it: by AWS_REGION, AWS_PROFILE,
AWS_ENDPOINT_URL and their like. It exits with 0 when it is told to end, 1 when it
cannot begin and 64 when the arguments are wrong.`

func runControlPlane(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "controlplane", controlPlaneAbout, "limitgate controlplane --table limits --topic arn:aws:sns:eu-central-1:123456789012:limits --leases leases")
	name := fs.String("table", "", "`name` of the DynamoDB table")
	topic := fs.String("topic", "", "`ARN` of the SNS topic")
	bucket := fs.String("audit-bucket", "", "`name` of the S3 bucket, with Object Lock, in which each change is written down; empty writes none down")
	leases := fs.String("leases", "", "`name` of the DynamoDB table for leases")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if *name == "" || *topic == "" || *leases == "" || fs.NArg() > 0 {
		fmt.Fprintln(env.stderr, "limitgate controlplane: --table, --topic and --leases are needed, and nothing else; limitgate controlplane --help says more")
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	log := slog.New(slog.NewTextHandler(env.stderr, nil))
	aws, err := loadAWS(ctx)
	if err != nil {
		return fail(env, err)
	}
	stream, err := dynamo.OpenStream(ctx, aws, *name)
	if err != nil {
		return fail(env, err)
	}
	changes := dynamo.NewChanges(stream, dynamo.NewLeases(aws, *leases, "relay"))
	limits := dynamo.NewTable(aws, *name)
	changes.Lost = func(ctx context.Context, r dynamo.Record) error { return restore(ctx, limits, r, log) }
	relay := controlplane.Relay{Table: limits, Stream: changes, Publish: dynamo.NewTopic(aws, *topic), Log: log}
	log.Info("telling of changes", "table", *name, "topic", *topic, "audit", *bucket)
	all, parts := []*dynamo.Changes{changes}, []func(context.Context) error{relay.Run}
	if *bucket != "" {
		written := dynamo.NewChanges(stream, dynamo.NewLeases(aws, *leases, "audit"))
		writer := audit.Writer{Records: auditRecords{written}, Archive: audit.NewBucket(aws, *bucket), Log: log}
		all, parts = append(all, written), append(parts, writer.Run)
	}
	err = runAll(ctx, parts...)
	if err := errors.Join(err, releaseAll(all...)); err != nil {
		return fail(env, err)
	}
	return exitOK
}

// restore writes an item again that was deleted or written by hand: nobody signed that, so
// that it must change no limit.
func restore(ctx context.Context, limits *dynamo.Table, r dynamo.Record, log *slog.Logger) error {
	if r.Before == nil || r.Before.Deleted || !r.Before.IsLimits() {
		if r.After != nil {
			log.Error("what was written by hand is no item: proxies do not use it", "key", r.After.Key)
		}
		return nil
	}
	if r.After != nil && changesNothing(r.Before, r.After) {
		return nil
	}
	written, err := limits.Restore(ctx, *r.Before, r.After, controlPlaneActor)
	if errors.Is(err, dynamo.ErrConflict) {
		return nil // somebody has written a version since
	}
	if err == nil {
		log.Error("an item was deleted or written by hand, and is as it was before", "key", written.Key, "version", written.Version)
	}
	return err
}

// changesNothing reports whether a write changed neither limits nor their version.
func changesNothing(before, after *table.Item) bool {
	return after.Deleted == before.Deleted && string(after.Body) == string(before.Body) && after.Version == before.Version
}
