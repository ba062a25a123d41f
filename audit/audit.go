// Package audit writes down every change of a table of limits, one object for each, where
// nothing is ever overwritten, and reads it back for people. It promises that a change is
// written exactly once, however often it is told, and that what nobody signed is said to
// be of an unknown actor.
package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/limitgate/limitgate/table"
)

// Entry is one change of one item.
type Entry struct {
	Key      string      `json:"key"`
	Sequence string      `json:"sequence,omitempty"` // of the stream
	Actor    string      `json:"actor"`              // Unknown if nobody signed it
	Version  int64       `json:"version"`            // after it
	At       time.Time   `json:"at"`
	Before   *table.Item `json:"before,omitempty"`
	After    *table.Item `json:"after,omitempty"` // nil for what was deleted without a tombstone
}

// Unknown is the actor of a change that nobody signed: a deletion without a tombstone, or
// a write without a new version or an actor.
const Unknown = "unknown"

// NewEntry returns the entry of a change; ok is false for what is none: a tombstone whose
// time was up.
func NewEntry(sequence string, before, after *table.Item, now time.Time) (e Entry, ok bool) {
	e = Entry{Sequence: sequence, Before: before, After: after, Actor: Unknown, At: now.UTC()}
	switch {
	case after != nil:
		e.Key, e.Version = after.Key, after.Version
		if signed(before, after) {
			e.Actor, e.At = after.Actor, after.At.UTC()
		}
	case before == nil || before.Deleted:
		return e, false
	default:
		e.Key, e.Version = before.Key, before.Version
	}
	return e, true
}

// signed reports whether a write says who made it, and is of a new version.
func signed(before, after *table.Item) bool {
	return after.Actor != "" && !after.At.IsZero() && (before == nil || after.Version > before.Version)
}

// Name returns the name of the entry's object: those of an item stand together, in their
// order, and one change has one name.
func (e *Entry) Name() string {
	return Prefix(e.Key) + fmt.Sprintf("%019d-%s.json", e.Version, url.PathEscape(e.Sequence))
}

// Prefix returns what the names of an item's entries begin with.
func Prefix(key string) string { return url.PathEscape(key) + "/" }

// Archive keeps objects for good.
type Archive interface {
	// Create writes an object that is not there. It reports false if it is.
	Create(ctx context.Context, name string, body []byte) (created bool, err error)
	// Read returns the objects whose names begin with prefix, in the order of their names.
	Read(ctx context.Context, prefix string) ([][]byte, error)
}

// Records tell of changes.
type Records interface {
	// Next waits a moment for changes, and returns their entries. They are told again unless
	// Done is called.
	Next(ctx context.Context) ([]Entry, error)
	// Done notes that what Next returned was written.
	Done(ctx context.Context) error
}

// retryPause is how long nothing is tried after an error.
const retryPause = time.Second

// Writer writes down what records tell.
type Writer struct {
	Records Records
	Archive Archive
	Log     *slog.Logger
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.write(ctx); err != nil && ctx.Err() == nil {
			w.Log.Error("changes could not be written down, and will be", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(retryPause):
			}
		}
	}
	return nil
}

// write writes the next changes.
func (w *Writer) write(ctx context.Context) error {
	entries, err := w.Records.Next(ctx)
	if err != nil || len(entries) == 0 {
		return err
	}
	for i := range entries {
		e := &entries[i]
		body, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("write entry: %w", err)
		}
		created, err := w.Archive.Create(ctx, e.Name(), body)
		if err != nil {
			return err
		}
		if created && e.Actor == Unknown {
			w.Log.Error("an item was changed by nobody knows whom", "key", e.Key, "version", e.Version)
		}
	}
	return w.Records.Done(ctx)
}

// History reads the entries of an item, the oldest first.
func History(ctx context.Context, a Archive, key string) ([]Entry, error) {
	bodies, err := a.Read(ctx, Prefix(key))
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(bodies))
	for i, body := range bodies {
		if err := json.Unmarshal(body, &entries[i]); err != nil {
			return nil, fmt.Errorf("read history of %s: %w", key, err)
		}
	}
	// By their names they are in the order of their versions, and what nobody signed may have
	// any.
	slices.SortStableFunc(entries, func(a, b Entry) int { return compareSequences(a.Sequence, b.Sequence) })
	return entries, nil
}

// compareSequences compares numbers that may have more digits than an integer can hold.
func compareSequences(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
