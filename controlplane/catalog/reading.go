package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// BeginReading returns a mark for ApplyAll. Call it before the table is read, and
// EndReading when the reading is over.
func (c *Catalog) BeginReading() (mark uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading, c.dropped, c.recheck = true, false, time.Time{}
	return c.turn
}

// EndReading ends the reading that BeginReading began.
func (c *Catalog) EndReading() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
}

// ApplyAll applies the items of a whole table that was read after BeginReading returned
// mark. It returns the items that were new, and how many known ones were removed. The
// table overrides every message before the mark; later messages stay if they are newer.
// A confirmed item that is missing in the table stays in use for missingTime. A table
// without limits changes nothing, and the error is ErrEmpty.
func (c *Catalog) ApplyAll(items []table.Item, mark uint64) (fresh []table.Item, removed int, err error) {
	if isEmpty(items) {
		return nil, 0, fmt.Errorf("read %s: %w", c.opts.Name, ErrEmpty)
	}
	defer c.change()()
	defer c.endLogging()
	clear(c.ignored)
	next, there := map[string]table.Item{}, map[string]bool{}
	for i := range items {
		there[items[i].Key] = true
		c.confirm(&items[i], mark, next)
	}
	ended := c.remove(there, mark, next)
	fresh = c.put(next, items)
	for key := range ended {
		if it, used := c.active[key]; !used || it.Deleted {
			c.forget(key)
		}
	}
	maps.DeleteFunc(c.changed, func(_ string, turn uint64) bool { return turn <= mark })
	c.countUnconfirmed()
	c.refuseUnsigned(items)
	maps.DeleteFunc(c.rejected, func(key string, _ rejection) bool {
		_, known := c.items[key]
		return key != "" && !known && !there[key]
	})
	return slices.DeleteFunc(fresh, func(it table.Item) bool { return ended[it.Key] }), len(ended), nil
}

// logsItem reports whether to log a finding about one more item of a reading of the
// table: it returns false after maxLogged items. The caller holds mu, and calls
// endLogging when the reading is over.
func (c *Catalog) logsItem() bool {
	c.logged++
	return c.logged <= maxLogged
}

// endLogging logs how many items logsItem left out. The caller holds mu.
func (c *Catalog) endLogging() {
	if c.logged > maxLogged {
		c.opts.Log.Error("more items differ from the table", "items", c.logged-maxLogged)
	}
	c.logged = 0
}

// countUnconfirmed recomputes unconfirmedBytes. The caller holds mu.
func (c *Catalog) countUnconfirmed() {
	c.unconfirmedBytes = 0
	for key, t := range c.unconfirmed {
		n := len(c.items[key].Body)
		if t.confirmed != nil {
			n -= len(t.confirmed.Body)
		}
		if t.turn > 0 {
			c.unconfirmedBytes += max(0, n)
		}
	}
}

// confirm compares an item that was read after mark with the known one, and puts the
// item to be used into next. The caller holds mu.
func (c *Catalog) confirm(it *table.Item, mark uint64, next map[string]table.Item) {
	known, ok := c.items[it.Key]
	t, pending := c.unconfirmed[it.Key]
	delete(c.missing, it.Key)
	switch {
	case !it.IsLimits():
		if pending && t.turn <= mark && t.turn > 0 { // an unconfirmed item of a snapshot is the last good one
			c.takeBack(it.Key, t, next)
		}
	case c.changed[it.Key] > mark && known.Version > it.Version: // it was written after the mark
		if pending {
			was := *it
			t.confirmed = &was
			c.unconfirmed[it.Key] = t
		}
	case ok && table.Same(&known, it):
		delete(c.unconfirmed, it.Key)
		c.putRight(it.Key, next)
	default:
		if ok && known.Version > it.Version && c.logsItem() {
			c.opts.Log.Error("using older version of item from the table", "key", it.Key, "version", it.Version, "before", known.Version)
		}
		if pending && t.turn > 0 && it.Version <= known.Version { // otherwise a later version was only not received yet
			c.reverted++
		}
		delete(c.unconfirmed, it.Key)
		delete(c.rejected, it.Key)
		next[it.Key] = *it
	}
}

// putRight clears the rejection of a known item whose key held something that was not a
// limits item, and puts the item into next if it is not in use. The caller holds mu.
func (c *Catalog) putRight(key string, next map[string]table.Item) {
	if !errors.Is(c.rejected[key].why, errNoItem) {
		return
	}
	delete(c.rejected, key)
	known, used := c.items[key], c.active[key]
	if !table.Same(&known, &used) {
		next[key] = known
	}
}

// takeBack reverts an item that only a message named to the version confirmed before.
// The caller holds mu.
func (c *Catalog) takeBack(key string, t unconfirmed, next map[string]table.Item) {
	delete(c.unconfirmed, key)
	delete(c.rejected, key)
	c.reverted++
	if t.confirmed != nil {
		next[key] = *t.confirmed
		return
	}
	next[key] = c.removal(key)
}

// removal returns a tombstone for an item that is missing in the table. The caller
// holds mu.
func (c *Catalog) removal(key string) table.Item {
	return table.Item{Key: key, Version: max(c.items[key].Version, c.active[key].Version), At: c.opts.Now(), Deleted: true}
}

// remove puts into next the tombstones of items that were missing when the table was
// read after mark, and returns their keys. The caller holds mu.
func (c *Catalog) remove(there map[string]bool, mark uint64, next map[string]table.Item) (removed map[string]bool) {
	removed = map[string]bool{}
	for key := range c.keys() {
		known := c.items[key]
		t, pending := c.unconfirmed[key]
		used, inUse := c.active[key]
		switch {
		case there[key]:
		case c.changed[key] > mark: // it was written after the mark
			if pending {
				t.confirmed = nil
				c.unconfirmed[key] = t
			}
		case known.Deleted && (!inUse || used.Deleted): // the tombstone has expired
			removed[key] = true
		case known.Deleted: // it waits until no other item needs it
		case pending && (t.confirmed == nil || t.turn == 0), !pending && c.isMissing(key):
			if pending && t.turn > 0 {
				c.reverted++
			}
			delete(c.unconfirmed, key)
			delete(c.missing, key)
			delete(c.rejected, key)
			next[key] = c.removal(key)
			removed[key] = true
			if c.logsItem() {
				c.opts.Log.Error("removing item missing in the table", "key", key, "version", known.Version)
			}
		case pending:
			if c.takeBack(key, t, next); !t.confirmed.Deleted {
				c.isMissing(key)
			}
		}
	}
	return removed
}

// keys returns the keys of all items that are known or in use: a recalled item is only
// in use. The caller holds mu.
func (c *Catalog) keys() map[string]bool {
	keys := make(map[string]bool, len(c.items))
	for key := range c.items {
		keys[key] = true
	}
	for key := range c.active {
		keys[key] = true
	}
	return keys
}

// isMissing reports whether a confirmed item has been missing in the table for
// missingTime since the first call. The caller holds mu.
func (c *Catalog) isMissing(key string) bool {
	now := c.opts.Now()
	since, known := c.missing[key]
	if !known {
		if c.logsItem() {
			c.opts.Log.Error("keeping item missing in the table", "key", key, "for", missingTime)
		}
		c.missing[key] = now
		return false
	}
	return now.Sub(since) >= missingTime
}
