package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/limitgate/limitgate/catalog"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/dynamo"
	"github.com/limitgate/limitgate/limit"
)

// limitsSource is where the limits come from.
type limitsSource interface {
	Set() *limit.Set
	OnChange(apply func(*limit.Set))
	Reload() error
	Status() config.LimitsStatus
}

// awsTimeout bounds what is asked of AWS at the start, at the end and by people.
const awsTimeout = 30 * time.Second

// tableSource are limits in a DynamoDB table.
type tableSource struct {
	*catalog.Catalog
	name     string
	follower *catalog.Follower
	close    func(context.Context) error // of what tells of changes
	log      *slog.Logger
}

// compileOptions are what limits are checked against by the settings.
func compileOptions(s *config.Settings) limit.CompileOptions {
	return limit.CompileOptions{IPMaxTTL: s.PrivacyIPMaxTTL.Microseconds(), IPSecret: s.PrivacyIPSecretFile != ""}
}

// openTable subscribes to the changes of a table and then loads it, so that no change is
// missed between the two.
func openTable(ctx context.Context, s *config.Settings, log *slog.Logger, delay func(time.Duration)) (*tableSource, error) {
	if (s.UpdatesTopic == "") == (s.UpdatesQueue == "") {
		return nil, errors.New("limits of a table need to be told of changes: say --updates-topic ARN, or --updates-queue URL of a queue made for this proxy alone")
	}
	ctx, cancel := context.WithTimeout(ctx, awsTimeout)
	defer cancel()
	aws, err := loadAWS(ctx)
	if err != nil {
		return nil, err
	}
	t := &tableSource{name: s.Limits, log: log}
	t.Catalog = catalog.New(catalog.Options{Name: s.Limits, Log: log, Compile: func(parts map[string]json.RawMessage) (*limit.Set, error) {
		set, _, err := config.CompileParts(s.Limits, parts, compileOptions(s))
		return set, err
	}})
	var updates catalog.Updates
	if s.UpdatesQueue != "" {
		queue := dynamo.OpenQueue(aws, s.UpdatesQueue)
		updates, t.close = queue, queue.Close
	} else {
		topic := dynamo.NewSubscription(aws, s.UpdatesTopic)
		if err := topic.Open(ctx); err != nil {
			log.Warn("changes of the limits are not told yet", "error", err)
		}
		updates, t.close = topic, topic.Close
	}
	t.follower = catalog.NewFollower(t.Catalog, dynamo.NewTable(aws, s.LimitsTable()), updates, s.LimitsSnapshot, delay)
	if err := t.follower.Start(ctx); err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// end ends the subscription.
func (t *tableSource) end() {
	ctx, cancel := context.WithTimeout(context.Background(), awsTimeout)
	defer cancel()
	if err := t.close(ctx); err != nil {
		t.log.Warn("the queue of this proxy stays behind", "error", err)
	}
}

// Reload reads the whole table again.
func (t *tableSource) Reload() error {
	ctx, cancel := context.WithTimeout(context.Background(), awsTimeout)
	defer cancel()
	return t.follower.Refresh(ctx)
}

// Status describes the limits in use.
func (t *tableSource) Status() config.LimitsStatus {
	c, f := t.Catalog.Status(), t.follower.Status()
	st := config.LimitsStatus{Version: c.Version, Source: t.name, Loaded: f.Confirmed, Error: c.Error, Rejected: c.Rejections + f.Bad, OutOfOrder: c.Stale, Repairs: f.Repairs}
	if st.Error == "" {
		st.Error = f.Error
	}
	return st
}

// run follows the table until ctx ends; SIGHUP reads it anew.
func (t *tableSource) run(ctx context.Context) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	defer t.end()
	return runAll(ctx, t.follower.Run, func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-hup:
				if err := t.Reload(); err != nil {
					t.log.Error("the limits were not read again", "error", err)
				}
			}
		}
	})
}
