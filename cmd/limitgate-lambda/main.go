// Command limitgate-lambda is the control plane for AWS Lambda. It does what limitgate
// controlplane does, but receives changes from an event source mapping instead of reading
// streams itself. LIMITGATE_ROLE selects the work of a function:
//
//	relay   publishes changes to proxies; triggered by the stream of limits and a schedule
//	audit   writes an audit record for each change; triggered by the stream of limits
//	cells   publishes which cells share the limits, their admissions, and vetoed revisions;
//	        triggered by the stream of cells and a schedule
//
// The settings type lists the other variables. If one is missing, the command prints an
// error and exits with 1.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/limitgate/limitgate/controlplane"
	"github.com/limitgate/limitgate/controlplane/admission"
	"github.com/limitgate/limitgate/controlplane/appconfig"
	"github.com/limitgate/limitgate/controlplane/audit"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awsclient"
	"github.com/limitgate/limitgate/internal/logwriter"
)

// settings are the values of the environment variables.
type settings struct {
	role        string // LIMITGATE_ROLE
	table       string // LIMITGATE_TABLE, the DynamoDB table of limits: for relay and cells, and for audit, whose entries name it
	topic       string // LIMITGATE_TOPIC, the ARN of the topic: for relay
	deadLetters string // LIMITGATE_DEAD_LETTERS, the URL of a queue: for relay, may be empty
	bucket      string // LIMITGATE_AUDIT_BUCKET: for audit
	cells       string // LIMITGATE_CELLS_TABLE: for cells
	gate        string // LIMITGATE_ROLLOUT_GATE, see limitgate rollout: for cells, may be empty
}

// handler is the work of one role. Done is the number of records that are processed.
type handler interface {
	records(ctx context.Context, records []table.Record) (done int, err error)
	tick(ctx context.Context) error
}

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: logwriter.DurationText(awsclient.ExplainAttr)}))
	h, err := newHandler(context.Background(), readSettings(os.Getenv), log)
	if err != nil {
		fmt.Fprintln(os.Stderr, "limitgate-lambda:", err)
		os.Exit(1)
	}
	lambda.Start(func(ctx context.Context, body json.RawMessage) (events.DynamoDBEventResponse, error) {
		return handle(ctx, h, body, log)
	})
}

func readSettings(getenv func(string) string) settings {
	return settings{
		role: getenv("LIMITGATE_ROLE"), table: getenv("LIMITGATE_TABLE"), topic: getenv("LIMITGATE_TOPIC"), deadLetters: getenv("LIMITGATE_DEAD_LETTERS"),
		bucket: getenv("LIMITGATE_AUDIT_BUCKET"), cells: getenv("LIMITGATE_CELLS_TABLE"), gate: getenv("LIMITGATE_ROLLOUT_GATE"),
	}
}

// newHandler builds the handler of the role in the settings.
func newHandler(ctx context.Context, s settings, log *slog.Logger) (handler, error) {
	config, err := awsclient.Load(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case s.role == "relay" && s.table != "" && s.topic != "":
		return newRelay(config, s, log), nil
	case s.role == "audit" && s.bucket != "":
		return &auditor{&audit.Writer{Archive: audit.NewBucket(config, s.bucket), Table: s.table, Log: log}}, nil
	case s.role == "cells" && s.table != "" && s.cells != "":
		return newOverseer(config, s, log)
	}
	return nil, fmt.Errorf("LIMITGATE_ROLE is %q: say relay, with LIMITGATE_TABLE and LIMITGATE_TOPIC; audit, with LIMITGATE_AUDIT_BUCKET; or cells, with LIMITGATE_TABLE and LIMITGATE_CELLS_TABLE", s.role)
}

// relay publishes changes to proxies.
type relay struct {
	handler *controlplane.Handler
	digests *controlplane.Digests
	sweeper *dynamo.Sweeper
	swept   time.Time // last sweep for queues of dead proxies
}

// digestEvery is the interval at which the schedule publishes a digest.
const digestEvery = time.Minute

func newRelay(config aws.Config, s settings, log *slog.Logger) *relay {
	limits, topic := dynamo.NewTable(config, s.table), dynamo.NewTopic(config, s.topic)
	h := &controlplane.Handler{Publish: topic, Items: limits, Log: log}
	if s.deadLetters != "" {
		h.DeadLetter = dynamo.NewDeadLetters(config, s.deadLetters).Send
	}
	return &relay{handler: h, digests: &controlplane.Digests{Table: limits, Publish: topic, Log: log}, sweeper: dynamo.NewSweeper(config, s.topic)}
}

func (r *relay) records(ctx context.Context, records []table.Record) (int, error) {
	return r.handler.Handle(ctx, records)
}

// tick publishes a digest, and from time to time deletes the queues of dead proxies.
func (r *relay) tick(ctx context.Context) error {
	return errors.Join(r.digests.Update(ctx, digestEvery), r.sweep(ctx, time.Now()))
}

func (r *relay) sweep(ctx context.Context, now time.Time) error {
	if now.Sub(r.swept) < dynamo.SweepEvery {
		return nil
	}
	_, err := r.sweeper.Sweep(ctx, now)
	if err == nil {
		r.swept = now
	}
	return err
}

// auditor writes an audit record for each change.
type auditor struct{ writer *audit.Writer }

func (a *auditor) records(ctx context.Context, records []table.Record) (int, error) {
	return a.writer.Write(ctx, records)
}

// tick does nothing.
func (*auditor) tick(context.Context) error { return nil }

// overseer watches cells and rollouts.
type overseer struct {
	cells     *controlplane.Cells
	rollouts  *controlplane.Rollouts
	admission *controlplane.Admission
}

func newOverseer(config aws.Config, s settings, log *slog.Logger) (*overseer, error) {
	registry, limits := dynamo.NewRegistry(config, s.cells), dynamo.NewTable(config, s.table)
	o := &overseer{
		cells:     &controlplane.Cells{Registry: registry, Items: limits, Log: log},
		rollouts:  &controlplane.Rollouts{Vetoes: registry, Items: limits, Log: log},
		admission: &controlplane.Admission{Reports: registry, Window: admission.Window, Log: log, Measured: printMetrics},
	}
	if s.gate == "" {
		return o, nil
	}
	name, err := appconfig.ParseName(s.gate)
	if err != nil {
		return nil, fmt.Errorf("read LIMITGATE_ROLLOUT_GATE: %w", err)
	}
	o.rollouts.Close = appconfig.NewDeployments(config, name).Close
	return o, nil
}

// records reads the whole registry, whichever records have changed.
func (o *overseer) records(ctx context.Context, records []table.Record) (int, error) {
	if err := o.tick(ctx); err != nil {
		return 0, err
	}
	return len(records), nil
}

func (o *overseer) tick(ctx context.Context) error {
	now := time.Now()
	return errors.Join(o.cells.Update(ctx, now), o.rollouts.Update(ctx, now), o.admission.Update(ctx, now))
}
