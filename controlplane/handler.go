package controlplane

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// Publisher sends messages to all proxies.
type Publisher interface {
	// Publish sends messages in order, and returns how many were sent.
	Publish(ctx context.Context, messages []table.Message) (sent int, err error)
}

// Handler processes the changes of a table of limits. One goroutine may use it at a
// time; it may be called with a change more than once.
type Handler struct {
	Publish Publisher
	Items   Replacer
	// DeadLetter is called with a record that is not a change of limits, and the
	// reason. After an error it is called with the record again. It may be nil.
	DeadLetter func(ctx context.Context, r *table.Record, why string) error
	Log        *slog.Logger

	stuck string    // the sequence number of the record for which DeadLetter failed last
	tries int       // consecutive failures for that record
	rests time.Time // until when DeadLetter is not called
}

// Handle publishes versioned changes, in their order, and reverts others. It returns
// how many of the records are processed, from the first on: all, or those before the
// record that failed.
func (h *Handler) Handle(ctx context.Context, records []table.Record) (done int, err error) {
	var messages []table.Message
	var of []int     // the record of each message
	var poison []int // records that are not changes of limits
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
	for _, i := range poison { // last: a failure here repeats no other record
		why := "it was written by hand and is not a valid limits item: proxies ignore it, and limitgate limits push writes a valid one"
		if !table.IsKey(records[i].Key()) {
			why = "it was written by hand, and its key is not that of limits: proxies ignore it, and aws dynamodb delete-item deletes it"
		}
		if failed := h.sendToDeadLetter(ctx, &records[i], why); failed != nil {
			return i, failed
		}
	}
	return done, err
}

const (
	// deadLetterTries is how often in a row DeadLetter may fail for a record before the
	// record is dropped: other changes wait behind it.
	deadLetterTries = 5
	// deadLetterTimeout bounds one call of DeadLetter, for the same reason.
	deadLetterTimeout = 5 * time.Second
	// deadLetterPause is how long DeadLetter is not called after a record was dropped:
	// each of thousands of records would delay the changes behind it.
	deadLetterPause = time.Minute
)

// sendToDeadLetter passes on a record that is not a change of limits, or cannot be
// handled, with the reason.
func (h *Handler) sendToDeadLetter(ctx context.Context, r *table.Record, why string) error {
	h.Log.Error("ignoring change of a table item", "key", r.Key(), "reason", why)
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
		h.Log.Error("failed to send record to dead letters, dropping it and pausing", "key", r.Key(), "pause", deadLetterPause, "error", err)
		return nil
	}
	return err
}

// revert reverts a change without a new version and an actor.
func (h *Handler) revert(ctx context.Context, r *table.Record) error {
	written, err := restore(ctx, h.Items, r, time.Now())
	if errors.Is(err, table.ErrUnwritable) { // no other change waits for this one
		return h.sendToDeadLetter(ctx, r, "it was deleted or written by hand, and cannot be reverted: "+err.Error()+"; limitgate limits push writes it again")
	}
	if err != nil {
		return err
	}
	if written != nil {
		h.Log.Error("reverted item deleted or written by hand", "key", written.Key, "version", written.Version,
			"advice", "limitgate limits confirm applies the change that was reverted, and limitgate limits push makes changes that stay")
	}
	return nil
}
