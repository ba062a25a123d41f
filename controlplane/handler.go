package controlplane

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// Publisher tells all proxies.
type Publisher interface {
	// Publish sends messages, and returns how many of them it has, from the first on.
	Publish(ctx context.Context, messages []table.Message) (sent int, err error)
}

// Handler does what has to be done for each change of a table of limits. It may be called with
// one change more than once, by one goroutine at a time.
type Handler struct {
	Publish Publisher
	Items   Replacer
	// DeadLetter is called with what is no change of limits, and why; an error has it told
	// again. It may be nil.
	DeadLetter func(ctx context.Context, r *table.Record, why string) error
	Log        *slog.Logger

	stuck string    // the sequence number of the record that Poison failed for last
	tries int       // in a row
	rests time.Time // until when Poison is not called
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
		case r.Versioned():
			messages, of = append(messages, table.Message{Item: r.After, At: time.Now().UTC()}), append(of, i)
		case r.Expired():
		case r.Before == nil || !r.Before.IsLimits():
			poison = append(poison, i)
		default:
			err = h.revert(ctx, r)
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
		if failed := h.sendToDeadLetter(ctx, &records[i], "what was written by hand is no item: proxies do not use it"); failed != nil {
			return i, failed
		}
	}
	return done, err
}

const (
	// deadLetterTries is how often in a row Poison may fail for a record before it is given up: other
	// changes wait behind it.
	deadLetterTries = 5
	// deadLetterTimeout bounds one call of Poison, for the same reason.
	deadLetterTimeout = 5 * time.Second
	// deadLetterPause is how long Poison is not called after a record was given up: of thousands of
	// records each would hold up the changes behind it.
	deadLetterPause = time.Minute
)

// sendToDeadLetter passes on a record that is no change of limits, or cannot be handled, with the reason.
func (h *Handler) sendToDeadLetter(ctx context.Context, r *table.Record, why string) error {
	h.Log.Error("a record is passed over", "key", r.Key(), "why", why)
	if h.DeadLetter == nil || time.Now().Before(h.rests) {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, deadLetterTimeout)
	defer cancel()
	err := h.DeadLetter(limited, r, why)
	if err == nil || h.stuck != r.Sequence {
		h.stuck, h.tries = r.Sequence, 0
	}
	if h.tries++; err != nil && h.tries >= deadLetterTries {
		h.rests = time.Now().Add(deadLetterPause)
		h.Log.Error("a record is given up, and was not passed on; nor are others for a while", "key", r.Key(), "while", deadLetterPause, "error", err)
		return nil
	}
	return err
}

// revert makes good what nobody signed.
func (h *Handler) revert(ctx context.Context, r *table.Record) error {
	written, err := restore(ctx, h.Items, r, time.Now())
	if errors.Is(err, table.ErrUnwritable) { // and no other change waits for it
		return h.sendToDeadLetter(ctx, r, "it was deleted or written by hand, and cannot be written as it was: "+err.Error())
	}
	if err != nil {
		return err
	}
	if written != nil {
		h.Log.Error("an item was deleted or written by hand, and is as it was before", "key", written.Key, "version", written.Version)
	}
	return nil
}
