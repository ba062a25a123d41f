package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// Items reads and writes the items of a table.
type Items interface {
	// Get reads an item consistently; ok is false if there is none.
	Get(ctx context.Context, key string) (it table.Item, ok bool, err error)
	// Put writes the next version of an item that was read. It returns an error if the
	// item was changed in between.
	Put(ctx context.Context, it table.Item) (table.Item, error)
}

// Replacer is Items with writes that may skip versions.
type Replacer interface {
	Items
	// Replace writes an item, version included, in place of the one that was read, or
	// of none if was is nil. It returns an error if the item was changed in between.
	Replace(ctx context.Context, it table.Item, was *table.Item) error
}

// restore reverts a change without a new version and an actor, which must change no
// limit. It reads the item first, because it may have changed since. It returns the
// item that it wrote, or nil.
func restore(ctx context.Context, items Replacer, r *table.Record, at time.Time) (*table.Item, error) {
	now, ok, err := items.Get(ctx, r.Key())
	if err != nil {
		return nil, fmt.Errorf("restore %s: %w", r.Key(), err)
	}
	found := &now
	if !ok {
		found = nil
	}
	next, ok := reverted(*r.Before, found, r.After == nil, at)
	if !ok {
		return nil, nil
	}
	if err := items.Replace(ctx, next, found); err != nil {
		return nil, fmt.Errorf("restore %s: %w", r.Key(), err)
	}
	return &next, nil
}

// reverted returns the item to write after good was changed or deleted by hand; now is
// the present item, or nil. Ok is false if the present item can stay.
func reverted(good table.Item, now *table.Item, removed bool, at time.Time) (next table.Item, ok bool) {
	next = good
	next.InvalidVersion = ""
	next.Actor, next.At = Actor, at.UTC()
	next.Version = after(good.Version)
	switch {
	case now == nil:
	case now.IsLimits() && now.Version > good.Version:
		return next, false // a newer version was written since, possibly by an earlier call
	case now.IsLimits() && now.Version == good.Version && now.Deleted == good.Deleted && bytes.Equal(now.Body, good.Body):
		return next, false
	case now.IsLimits() && removed && now.Actor != Actor:
		// The item was created again by a writer that did not know about the deleted
		// one. It continues from the deleted version, or proxies would ignore it.
		next = *now
		next.Version = after(good.Version)
	case now.Version < table.MaxVersion:
		next.Version = after(max(good.Version, now.Version))
	}
	return next, true
}

// after returns the next version: 1 after the largest, which only a write by hand can
// have set. Proxies detect such a change by the digest.
func after(version int64) int64 {
	if version >= table.MaxVersion {
		return 1
	}
	return version + 1
}
