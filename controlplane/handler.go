package controlplane

import (
	"context"
	"log/slog"
	"time"

	"github.com/limitgate/limitgate/table"
)

// Publisher tells all proxies.
type Publisher interface {
	// Publish sends messages, and returns how many of them it has, from the first on.
	Publish(ctx context.Context, messages []table.Message) (sent int, err error)
}

// Handler does what has to be done for each change of a table of limits. It may be told of
// one change more than once.
type Handler struct {
	Publish Publisher
	Items   Mendable
	// Poison is called with what is no change of limits, and why; an error has it told
	// again. It may be nil.
	Poison func(ctx context.Context, r *table.Record, why string) error
	Log    *slog.Logger
}

// Handle tells proxies of changes that are signed, in their order, and mends what is not. It
// returns how many of the records are done with, from the first on: all, or up to the one
// of which the error is.
func (h *Handler) Handle(ctx context.Context, records []table.Record) (done int, err error) {
	var messages []table.Message
	var of []int     // the record of each message
	var poison []int // records that are none of limits
	done = len(records)
	for i := range records {
		r := &records[i]
		switch {
		case r.Signed():
			messages, of = append(messages, table.Message{Item: r.After, At: time.Now().UTC()}), append(of, i)
		case r.Expired():
		case r.Before == nil || !r.Before.IsLimits():
			poison = append(poison, i)
		default:
			err = h.mend(ctx, r)
		}
		if err != nil {
			done = i
			break
		}
	}
	if len(messages) > 0 {
		if sent, failed := h.Publish.Publish(ctx, messages); failed != nil {
			return of[sent], failed
		}
	}
	for _, i := range poison { // when nothing else has to be told again
		if failed := h.bury(ctx, &records[i]); failed != nil {
			return i, failed
		}
	}
	return done, err
}

// bury tells of what is no change of limits.
func (h *Handler) bury(ctx context.Context, r *table.Record) error {
	const why = "what was written by hand is no item: proxies do not use it"
	h.Log.Error(why, "key", r.Key())
	if h.Poison == nil {
		return nil
	}
	return h.Poison(ctx, r, why)
}

// mend makes good what nobody signed.
func (h *Handler) mend(ctx context.Context, r *table.Record) error {
	written, err := restore(ctx, h.Items, r, time.Now())
	if err != nil {
		return err
	}
	if written != nil {
		h.Log.Error("an item was deleted or written by hand, and is as it was before", "key", written.Key, "version", written.Version)
	}
	return nil
}
