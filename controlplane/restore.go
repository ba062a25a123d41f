package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// Items are the items of a table.
type Items interface {
	// Get reads an item, as it is now; ok is false where there is none.
	Get(ctx context.Context, key string) (it table.Item, ok bool, err error)
	// Put writes the next version of an item that was read. Where somebody else did so
	// meanwhile it returns an error.
	Put(ctx context.Context, it table.Item) (table.Item, error)
}

// Replacer are items of which versions may be left out.
type Replacer interface {
	Items
	// Replace writes an item as it is in the place of what was read, nil for nothing. Where
	// something else is there by now it returns an error.
	Replace(ctx context.Context, it table.Item, was *table.Item) error
}

// restore makes good what nobody signed: it must change no limit. It looks at what is there
// now, since more may have happened since. It returns what it wrote, nil for nothing.
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

// reverted returns what is to be written where good was changed or removed by hand, and now is
// what is there, nil for nothing; ok is false where that can stay.
func reverted(good table.Item, now *table.Item, removed bool, at time.Time) (next table.Item, ok bool) {
	next = good
	next.InvalidVersion = ""
	next.Actor, next.At = Actor, at.UTC()
	next.Version = after(good.Version)
	switch {
	case now == nil:
	case now.IsLimits() && now.Version > good.Version:
		return next, false // somebody has signed a version since, or this was done before
	case now.IsLimits() && now.Version == good.Version && now.Deleted == good.Deleted && bytes.Equal(now.Body, good.Body):
		return next, false
	case now.IsLimits() && removed && now.Actor != Actor:
		// Somebody has made it again who did not know that it was there: it goes on from
		// its version, or nobody would notice.
		next = *now
		next.Version = after(good.Version)
	case now.Version < table.MaxVersion:
		next.Version = after(max(good.Version, now.Version))
	}
	return next, true
}

// after returns the version that follows: 1 after the largest, which only a write by hand can
// have made. Proxies find such a change by the digest.
func after(version int64) int64 {
	if version >= table.MaxVersion {
		return 1
	}
	return version + 1
}
