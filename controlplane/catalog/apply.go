package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// The table is authoritative, and a consistent read of it determines what is enforced.
// A message is a hint that is used at once: the next read, or an equal digest, confirms
// it or reverts it.

const (
	// missingTime is how long a confirmed item stays in use after it disappeared from
	// the table. A control plane restores items that were deleted by hand, and proxies
	// that read the table before that keep the limits.
	missingTime = 30 * time.Second
	// maxUnconfirmed bounds the items that only messages named, at a kilobyte or so
	// each. Beyond it, messages about other items are dropped and the table is read.
	maxUnconfirmed = 20_000
	// maxLogged bounds the log lines about items of one reading of the table.
	maxLogged = 20
	// maxUnconfirmedBytes bounds the bodies of unconfirmed items: those of new items,
	// and the growth of the others.
	maxUnconfirmedBytes = 16 << 20
)

// unconfirmed describes an item that only a message or a snapshot named.
type unconfirmed struct {
	turn      uint64      // of the message; 0 for a snapshot
	confirmed *table.Item // the item that was confirmed before, or nil
}

// Load loads the items of a whole table. It fails when no set can be made of them, and
// then the catalog stays empty.
func (c *Catalog) Load(items []table.Item) error { return c.load(items, true) }

// LoadSnapshot is Load with the items of a snapshot. They stay in use until the table
// is read.
func (c *Catalog) LoadSnapshot(items []table.Item) error { return c.load(items, false) }

func (c *Catalog) load(items []table.Item, confirmed bool) error {
	defer c.change()()
	next := map[string]table.Item{}
	for _, it := range items {
		if !it.IsLimits() {
			c.refuse(it)
			continue
		}
		next[it.Key] = it
		if !confirmed {
			c.unconfirmed[it.Key] = unconfirmed{}
		}
	}
	c.put(next, items)
	if c.set != nil {
		return nil
	}
	why := c.rejected[""].why
	if why == nil || isEmpty(items) {
		why = ErrEmpty
	}
	if len(items) > 0 && !slices.ContainsFunc(items, func(it table.Item) bool { return table.IsKey(it.Key) }) {
		why = errOther
	}
	c.clear()
	return fmt.Errorf("load %s: %w", c.opts.Name, why)
}

// isEmpty reports whether a table has no limits.
func isEmpty(items []table.Item) bool {
	return !slices.ContainsFunc(items, func(it table.Item) bool { return it.IsLimits() && table.IsPart(it.Key) && !it.Deleted })
}

// Recall uses other versions of rejected items, such as those of a snapshot. If no
// version of an item is in use, its version must be at least the rejected one; see
// restoreOlder for older versions.
func (c *Catalog) Recall(items []table.Item) {
	defer c.change()()
	for _, it := range items {
		newest, unusable := c.rejected[it.Key]
		if _, inUse := c.active[it.Key]; unusable && !inUse && it.IsLimits() && it.Version >= newest.version && newest.version > 0 {
			c.useOlder(it, newest)
		}
	}
	c.restoreOlder(items)
}

// Apply applies items that messages named, and returns those that were new. The newest
// version of each item counts. Call it now and then without items, too: rejected items
// may be usable by then.
func (c *Catalog) Apply(items []table.Item) (fresh []table.Item) {
	defer c.change()()
	c.turn++
	next := map[string]table.Item{}
	for _, it := range items {
		if c.isNewer(&it, next) {
			next[it.Key] = it
		}
	}
	for key := range next {
		t, again := c.unconfirmed[key]
		was, ok := c.items[key]
		if ok && (!again || t.turn == 0) {
			t.confirmed = &was
		}
		c.unconfirmedBytes += max(0, len(next[key].Body)-len(was.Body))
		t.turn = c.turn
		c.unconfirmed[key], c.changed[key] = t, c.turn
	}
	return c.put(next, items)
}

// isNewer reports whether a message's item is newer than the known one, and than that
// in next. The caller holds mu.
func (c *Catalog) isNewer(it *table.Item, next map[string]table.Item) bool {
	known, ok := c.items[it.Key]
	if known.Deleted && c.opts.Now().Sub(known.At) > table.TombstoneTTL {
		ok = false // the tombstone has expired, and versions restart at 1
	}
	if newer, seen := next[it.Key]; seen {
		known, ok = newer, true
	}
	switch {
	case !it.IsLimits():
		c.ignore(it)
	case ok && it.Version <= known.Version:
		if it.Version < known.Version {
			c.stale++
		}
	case !ok && len(c.unconfirmed)+len(next) >= maxUnconfirmed, len(it.Body) > len(known.Body) && c.unconfirmedBytes >= maxUnconfirmedBytes:
		c.dropped = true
	default:
		return true
	}
	return false
}

// Turn returns a mark of the changes so far. Call it before reading a single item for
// Confirm.
func (c *Catalog) Turn() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turn
}

// Confirm applies items that were read from the table one by one after Turn returned
// mark, and returns those that were new.
func (c *Catalog) Confirm(items []table.Item, mark uint64) (fresh []table.Item) {
	defer c.change()()
	defer c.endLogging()
	c.turn++
	next := map[string]table.Item{}
	for i := range items {
		c.confirm(&items[i], mark, next)
	}
	for key := range next {
		c.changed[key] = c.turn // a reading of the table that has already begun is older
	}
	fresh = c.put(next, items)
	c.refuseUnsigned(items)
	return fresh
}

// refuseUnsigned refuses the items that were read and are not limits items. The caller
// holds mu.
func (c *Catalog) refuseUnsigned(items []table.Item) {
	for i := range items {
		if !items[i].IsLimits() {
			c.refuse(items[i])
		}
	}
}

// forget forgets an item that is neither in the table nor in use. The caller holds mu.
func (c *Catalog) forget(key string) {
	delete(c.items, key)
	delete(c.active, key)
	delete(c.nonTenants, key)
	delete(c.unconfirmed, key)
	delete(c.missing, key)
	delete(c.changed, key)
}

// Agree confirms all items if a digest equals that of this catalog, and reports whether
// it does. Then every item that the digest counts is in the table.
func (c *Catalog) Agree(digest table.Digest) bool {
	if digest != c.Digest() { // the usual case while items arrive
		return false
	}
	defer c.change()()
	if digest != c.sum {
		return false
	}
	next := map[string]table.Item{}
	for key, r := range c.rejected {
		switch it, known := c.items[key]; {
		case known && !it.Deleted:
			c.putRight(key, next)
		case errors.Is(r.why, errNoItem) && c.recheck.IsZero(): // the digest does not count it
			c.recheck = c.opts.Now().Add(missingTime)
		}
	}
	for key, t := range c.unconfirmed {
		if it := c.items[key]; it.Deleted && t.confirmed == nil && (c.active[key].Version == 0 || c.active[key].Deleted) {
			c.forget(key) // a tombstone of an unknown item, which the digest does not count
		}
	}
	clear(c.unconfirmed)
	clear(c.missing)
	c.unconfirmedBytes = 0
	if !c.reading {
		clear(c.changed)
	}
	c.put(next, nil)
	return true
}

// Reverted returns how many items that messages named were reverted to the table's
// version.
func (c *Catalog) Reverted() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reverted
}

// RereadAt returns when to read the table again because items are missing or messages
// were dropped; zero means never.
func (c *Catalog) RereadAt() (at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropped {
		return c.opts.Now()
	}
	at = c.recheck
	for _, since := range c.missing {
		if due := since.Add(missingTime); at.IsZero() || due.Before(at) {
			at = due
		}
	}
	return at
}

// put replaces known items by next, and then uses older versions from items in place of
// rejected ones. It returns the items that were new. The caller holds mu.
func (c *Catalog) put(next map[string]table.Item, items []table.Item) (fresh []table.Item) {
	if len(next) == 0 {
		if c.set != nil && c.due(c.waiting()) {
			c.activate(next)
		}
		c.restoreOlder(items)
		return nil
	}
	for key, it := range next {
		if was, ok := c.items[key]; ok {
			c.sum.Remove(&was)
		}
		c.sum.Add(&it)
		c.items[key] = it
		delete(c.ignored, key)
	}
	fresh = slices.Collect(maps.Values(next))
	c.activate(next)
	c.restoreOlder(items)
	return fresh
}
