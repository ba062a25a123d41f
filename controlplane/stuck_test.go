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

// stuck has items of which one can never be restored, such as one of 400 KB whose actor
// was shorter than control-plane.
type stuck struct{ key string }

func (s *stuck) Get(context.Context, string) (it table.Item, ok bool, err error) {
	return it, false, nil
}
func (s *stuck) Put(_ context.Context, it table.Item) (table.Item, error) { return it, nil }
func (s *stuck) Replace(_ context.Context, it table.Item, _ *table.Item) error {
	if it.Key == s.key {
		return fmt.Errorf("put: %w", table.ErrUnwritable)
	}
	return nil
}

// batchStream returns all remaining records, a hundred at most.
type batchStream struct{ records []table.Record }

func (b *batchStream) Next(ctx context.Context) ([]table.Record, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(200 * time.Millisecond):
	}
	return b.records[:min(100, len(b.records))], nil
}

func (b *batchStream) Done(context.Context) error {
	b.records = b.records[min(100, len(b.records)):]
	return nil
}

// TestOneRecordHoldsNoOther: beside a change by hand that can never be reverted, or a
// queue of dead letters that does not exist, all other changes are published, and each
// a few times at most.
func TestOneRecordHoldsNoOther(t *testing.T) {
	for _, what := range []string{"mend", "dead letters"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				big, stream := item("TENANT#big", 1), &batchStream{}
				for i := range 3 {
					it := item(fmt.Sprint("TENANT#before", i), 1)
					stream.records = append(stream.records, table.Record{After: &it})
				}
				h := &Handler{Items: &stuck{"TENANT#big"}, Log: slog.New(slog.DiscardHandler)}
				if what == "mend" {
					stream.records = append(stream.records, table.Record{Before: &big})
				} else {
					note := table.Item{Key: "note"}
					stream.records = append(stream.records, table.Record{After: &note})
					h.DeadLetter = func(context.Context, *table.Record, string) error { return errors.New("QueueDoesNotExist") }
				}
				for i := range 200 {
					it := item(fmt.Sprint("TENANT#behind", i), 1)
					stream.records = append(stream.records, table.Record{After: &it})
				}
				topic := &fakeTopic{}
				h.Publish = topic
				r := Relay{Stream: stream, Handler: h, Log: h.Log}
				ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
				defer stop()
				_ = r.Run(ctx)
				items, _ := topic.got()
				distinct := map[string]bool{}
				for _, it := range items {
					distinct[it.Key] = true
				}
				if len(distinct) < 203 || len(items) > 203*deadLetterTries {
					t.Errorf("after ten minutes %d of 203 changes are told, in %d messages", len(distinct), len(items))
				}
			})
		})
	}
}
