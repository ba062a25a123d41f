package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// TestManyUnusableRecords: a thousand records that are not changes of limits delay the
// changes behind them by less than two minutes, although the queue of dead letters
// rejects them, or hangs. Later ones are sent again.
func TestManyUnusableRecords(t *testing.T) {
	for what, poison := range map[string]func(context.Context, *table.Record, string) error{
		"refuses": func(context.Context, *table.Record, string) error { return errors.New("AccessDenied") },
		"hangs": func(ctx context.Context, _ *table.Record, _ string) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(75 * time.Second): // as long as a client of AWS waits
				return errors.New("no answer")
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stream := &batchStream{}
				for i := range 1000 {
					note := table.Item{Key: fmt.Sprint("note", i)}
					stream.records = append(stream.records, table.Record{After: &note, Sequence: fmt.Sprint(i)})
				}
				behind := item("TENANT#behind", 1)
				stream.records = append(stream.records, table.Record{After: &behind, Sequence: "behind"})
				topic := &fakeTopic{}
				h := &Handler{Items: &stuck{}, Publish: topic, Log: slog.New(slog.DiscardHandler), DeadLetter: poison}
				r := Relay{Stream: stream, Handler: h, Log: h.Log}
				ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
				defer stop()
				_ = r.Run(ctx)
				if items, _ := topic.got(); len(items) == 0 {
					t.Errorf("after two minutes the change is not told, and %d records are left", len(stream.records))
				}
				passed := 0
				h.DeadLetter = func(context.Context, *table.Record, string) error { passed++; return nil }
				time.Sleep(deadLetterPause)
				note := table.Item{Key: "later"}
				if _, err := h.Handle(t.Context(), []table.Record{{After: &note, Sequence: "later"}}); err != nil || passed != 1 {
					t.Errorf("when the queue is there again %d records are passed on, %v", passed, err)
				}
			})
		})
	}
}
