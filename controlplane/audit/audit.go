// Package audit writes every change of a table of limits into an archive, one object
// for each change, where no object is ever overwritten, and reads the history of an
// item. It promises that a change is written exactly once, however often it is
// received, and that a change without a new version and an actor gets the actor
// Unknown.
package audit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/logthrottle"
)

// Entry is one change of one item.
type Entry struct {
	Key      string      `json:"key"`
	Table    string      `json:"table,omitempty"`    // name of the table, "" if the writer did not know it
	Sequence string      `json:"sequence,omitempty"` // of the stream
	Actor    string      `json:"actor"`              // Unknown if the change has none
	Version  int64       `json:"version"`            // after the change
	At       time.Time   `json:"at"`
	Before   *table.Item `json:"before,omitempty"`
	After    *table.Item `json:"after,omitempty"` // nil for a deletion without a tombstone
}

// Unknown is the actor of a change without an actor: a deletion without a tombstone, or
// a write without a new version or an actor.
const Unknown = "unknown"

// NewEntry returns the entry of a change; ok is false for the expiry of a tombstone,
// which is no change.
func NewEntry(r *table.Record, now time.Time) (e Entry, ok bool) {
	if r.Expired() {
		return e, false
	}
	e = Entry{Key: r.Key(), Sequence: r.Sequence, Before: r.Before, After: r.After, Actor: Unknown, At: now.UTC()}
	switch {
	case r.After == nil:
		e.Version = r.Before.Version
	case r.Versioned():
		e.Version, e.Actor, e.At = r.After.Version, r.After.Actor, r.After.At.UTC()
	default:
		e.Version = r.After.Version
	}
	return e, true
}

// Name returns the name of the entry's object. The names of an item have a common
// prefix and are ordered by version, and one change has one name.
func (e *Entry) Name() string {
	return Prefix(e.Key) + fmt.Sprintf("%019d-%s.json", e.Version, url.PathEscape(e.Sequence))
}

// maxPrefix bounds the part of a name that is the item's, in bytes: with the rest it
// must fit the 1,024 that S3 accepts.
const maxPrefix = 900

// Prefix returns the common prefix of the names of an item's entries: its key or, of a
// very long one, the key's SHA-256.
func Prefix(key string) string {
	prefix := url.PathEscape(key)
	if len(prefix) > maxPrefix {
		prefix = fmt.Sprintf("sha256-%x", sha256.Sum256([]byte(key)))
	}
	return prefix + "/"
}

// Archive stores objects permanently.
type Archive interface {
	// Create writes an object that does not exist. It returns false if it exists.
	Create(ctx context.Context, name string, body []byte) (created bool, err error)
	// Read returns the objects whose names begin with prefix, in the order of their
	// names.
	Read(ctx context.Context, prefix string) ([][]byte, error)
}

// Records reads changes.
type Records interface {
	// Next waits a moment for changes, and returns those that it finds. It returns them
	// again unless Done is called.
	Next(ctx context.Context) ([]table.Record, error)
	// Done records that the changes returned by Next were written.
	Done(ctx context.Context) error
}

// writers is how many objects are written concurrently: the records of one read must be
// written within a lease, however slow each write is.
const writers = 8

// retryPause is the pause after an error, and logEvery the least time between two lines about errors.
const (
	retryPause = time.Second
	logEvery   = time.Minute
)

// Writer writes changes to an archive.
type Writer struct {
	Records Records
	Archive Archive
	// Table is the name of the table, which each entry gets: a bucket may have entries of several. It may
	// be "".
	Table string
	Log   *slog.Logger
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) error {
	lines := logthrottle.Throttle{Period: logEvery}
	for ctx.Err() == nil {
		if err := w.write(ctx); err != nil && ctx.Err() == nil {
			if lines.Allow() {
				w.Log.Error("failed to write changes to the audit, retrying", "error", err)
			}
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
	records, err := w.Records.Next(ctx)
	if err != nil || len(records) == 0 {
		return err
	}
	if _, err := w.Write(ctx, records); err != nil {
		return err
	}
	return w.Records.Done(ctx)
}

// Write writes changes, some concurrently, so that a change may be stored a moment
// before an older one of the same item. It returns how many of them are processed, from
// the first on: all, or those before the change that failed. Any number of goroutines
// may call it.
func (w *Writer) Write(ctx context.Context, records []table.Record) (done int, err error) {
	errs := make([]error, len(records))
	next := atomic.Int64{}
	var wg sync.WaitGroup
	for range min(writers, len(records)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(records); i = int(next.Add(1)) - 1 {
				errs[i] = w.writeOne(ctx, &records[i])
			}
		})
	}
	wg.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return i, errs[i]
	}
	return len(records), nil
}

// handAdvice, newAdvice and otherAdvice name what follows a change without an actor, and the commands that make it on purpose.
const (
	handAdvice  = "the item was written or deleted by hand: the control plane reverts that; limitgate limits confirm applies it, and limitgate limits push makes changes that stay"
	newAdvice   = "the item was written by hand where there was none, so that nothing is reverted, and proxies ignore it; limitgate limits push writes it, or deletes it if the file does not have it"
	otherAdvice = "its key is not that of limits, so that proxies ignore it; aws dynamodb delete-item deletes it, and the tables of --leases and --cells are others than that of limits"
)

// writeOne writes a change, unless it is already there.
func (w *Writer) writeOne(ctx context.Context, r *table.Record) error {
	e, ok := NewEntry(r, time.Now())
	if !ok {
		return nil
	}
	e.Table = w.Table
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // escaped, a body of < would take six times its size
	if err := encoder.Encode(&e); err != nil {
		return fmt.Errorf("write entry: %w", err)
	}
	created, err := w.Archive.Create(ctx, e.Name(), body.Bytes())
	if err != nil {
		return err
	}
	if created && e.Actor == Unknown {
		advice := handAdvice
		switch {
		case !table.IsKey(e.Key):
			advice = otherAdvice
		case e.Before == nil:
			advice = newAdvice
		}
		if table.IsKey(e.Key) && !e.ChangesLimits() {
			w.Log.Info("item written by hand, and its limits are as they were", "key", e.Key, "version", e.Version)
			return nil
		}
		w.Log.Error("item changed without an actor", "key", e.Key, "version", e.Version, "advice", advice)
	}
	return nil
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
	// The names are in the order of the versions, and a write by hand may have any
	// version.
	slices.SortStableFunc(entries, func(a, b Entry) int { return compareSequences(a.Sequence, b.Sequence) })
	return entries, nil
}

// ChangesLimits reports whether the change is of the limits of the item or of their version: a write may be of other
// attributes alone. One without which proxies refuse the item is none of these.
func (e *Entry) ChangesLimits() bool {
	was, is := e.Before, e.After
	return was == nil || is == nil || was.Deleted != is.Deleted || string(was.Body) != string(is.Body) || was.Version != is.Version || was.IsLimits() != is.IsLimits()
}

// compareSequences compares decimal numbers of any length.
func compareSequences(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
