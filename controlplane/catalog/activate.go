package catalog

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// retryEvery is how often rejected plans are tried again while only tenants change.
const retryEvery = 5 * time.Second

// activate puts new items into the set, and retries rejected items that may be usable
// by now: a tenant may have arrived before its plan. Items that cannot be used are left
// out, and all others are used. The caller holds mu.
func (c *Catalog) activate(next map[string]table.Item) {
	if c.set == nil {
		next = maps.Clone(c.items)
		if c.lacks() {
			return
		}
	}
	again := c.waiting()
	if c.set != nil && allTenants(next) && !c.due(again) {
		again = nil
	}
	if !allTenants(again) {
		c.retried = c.opts.Now()
	}
	for key, it := range again {
		if _, changes := next[key]; !changes {
			next[key] = it
		}
	}
	set, err := c.compile(next, true)
	if err == nil {
		c.install(set, next)
		return
	}
	if c.set == nil {
		first := filter(next, func(it table.Item) bool { return isPlanOrShared(it.Key) })
		if _, err = c.compile(first, false); err != nil {
			c.reject(table.Item{}, c.findCulprit(first, err)) // no single item is to blame
			return
		}
	}
	for len(next) > 0 {
		why := map[string]error{}
		// Items that others need are added first and deleted last.
		c.bisect(filter(next, func(it table.Item) bool { return !table.IsTenant(it.Key) && !it.Deleted }), why)
		c.bisect(filter(next, func(it table.Item) bool { return table.IsTenant(it.Key) }), why)
		c.bisect(filter(next, func(it table.Item) bool { return !table.IsTenant(it.Key) && it.Deleted }), why)
		if len(why) == len(next) {
			for key, it := range next {
				c.reject(it, why[key])
			}
			return
		}
		next = filter(next, func(it table.Item) bool { return why[it.Key] != nil })
	}
}

// isPlanOrShared reports whether an item must be usable before there is a set: without
// a plan, its tenants would get the limits of another plan.
func isPlanOrShared(key string) bool { return table.IsPart(key) && !table.IsTenant(key) }

// maxSearched bounds the number of items that findCulprit searches: each of them costs a
// compilation of all others.
const maxSearched = 200

// findCulprit returns why items cannot be used, with the name of one item without which
// the others can be used. The caller holds mu.
func (c *Catalog) findCulprit(items map[string]table.Item, why error) error {
	if len(items) > maxSearched {
		return why
	}
	for _, key := range slices.Sorted(maps.Keys(items)) {
		if _, err := c.compile(filter(items, func(it table.Item) bool { return it.Key != key }), false); err == nil {
			return fmt.Errorf("%s: %w", key, why)
		}
	}
	return why
}

// lacks reports whether a plan or the shared item was rejected because it is not a
// limits item. The caller holds mu.
func (c *Catalog) lacks() bool {
	for key, r := range c.rejected {
		if isPlanOrShared(key) && errors.Is(r.why, errNoItem) {
			c.reject(table.Item{}, fmt.Errorf("%s: %w", key, r.why))
			return true
		}
	}
	return false
}

// restoreOlder uses older versions of rejected items, if they are newer than the
// versions in use. The caller holds mu.
func (c *Catalog) restoreOlder(items []table.Item) {
	if c.set == nil || len(c.rejected) == 0 {
		return
	}
	items = slices.SortedFunc(slices.Values(items), func(a, b table.Item) int { return cmp.Compare(a.Version, b.Version) })
	plans := false
	for _, it := range items {
		newest, unusable := c.rejected[it.Key]
		unsigned := unusable && newest.version == 0 // a version of a limits item is newer
		if !it.IsLimits() || !unsigned && it.Version >= newest.version || it.Version <= c.active[it.Key].Version {
			continue
		}
		if c.useOlder(it, newest) {
			plans = plans || !table.IsTenant(it.Key)
		}
	}
	if plans { // other items may have waited for these plans
		c.retried = time.Time{}
		c.activate(map[string]table.Item{})
	}
}

// useOlder uses an item in place of a newer version that was rejected, and reports
// whether that is possible. The caller holds mu.
func (c *Catalog) useOlder(it table.Item, newest rejection) bool {
	set, err := c.compile(map[string]table.Item{it.Key: it}, true)
	if err != nil {
		return false
	}
	c.install(set, map[string]table.Item{it.Key: it})
	c.rejected[it.Key] = newest
	return true
}

// waiting returns the rejected items that may become usable later. The caller holds mu.
func (c *Catalog) waiting() map[string]table.Item {
	again := map[string]table.Item{}
	for key, r := range c.rejected {
		if it, ok := c.items[key]; ok && it.Version == r.version && !errors.Is(r.why, errNoItem) {
			again[key] = it
		}
	}
	return again
}

// due reports whether to retry rejected plans although only tenants changed. Tenants
// need plans and not each other, but a plan may wait for a tenant to leave it. Retrying
// a plan costs as much as loading all items. The caller holds mu.
func (c *Catalog) due(again map[string]table.Item) bool {
	return !allTenants(again) && c.opts.Now().Sub(c.retried) >= retryEvery
}

// bisect uses as many of the items as possible, half by half, and stores in why the
// errors of the others. The caller holds mu.
func (c *Catalog) bisect(items map[string]table.Item, why map[string]error) {
	if len(items) == 0 {
		return
	}
	set, err := c.compile(items, false)
	if err == nil {
		c.install(set, items)
		return
	}
	if len(items) == 1 {
		for key := range items {
			why[key] = err
		}
		return
	}
	order := slices.SortedFunc(maps.Values(items), func(a, b table.Item) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Key, b.Key))
	})
	for _, half := range [][]table.Item{order[:len(order)/2], order[len(order)/2:]} {
		part := map[string]table.Item{}
		for _, it := range half {
			part[it.Key] = it
		}
		c.bisect(part, why)
	}
}

// install puts a set into use. The caller holds mu.
func (c *Catalog) install(set *limit.Set, items map[string]table.Item) {
	for key, it := range items {
		was := c.active[key]
		if was.Version > 0 {
			c.used.Remove(&was)
		}
		c.used.Add(&it)
		c.active[key] = it
		if !table.IsTenant(key) {
			c.nonTenants[key] = true
		}
		delete(c.rejected, key)
	}
	delete(c.rejected, "")
	set.Version = hex.EncodeToString(binary.BigEndian.AppendUint64(nil, c.used.Sum)[:6])
	c.set = set
	c.publish() // before a decision uses it
	c.apply(set)
}

// errNoItem is the reason for rejecting an item without a valid version, actor or time.
var errNoItem = errors.New("not a valid limits item")

// refuse rejects an item that is not a limits item. It is rejected only if its key is
// that of a known item, or if there is no set yet and its key is valid: the number of
// others is unbounded, and the status has the first of them alone. The caller holds mu.
func (c *Catalog) refuse(it table.Item) {
	why := fmt.Errorf("%w: %s", errNoItem, it.Flaw())
	if _, known := c.items[it.Key]; known || c.set == nil && table.IsKey(it.Key) {
		c.reject(it, why)
		return
	}
	if table.IsKey(it.Key) && len(c.ignored) < maxListed {
		c.ignored[it.Key] = rejection{it.Version, why}
	}
	c.ignore(&it)
}

// ignore counts an item that is not a limits item. The caller holds mu.
func (c *Catalog) ignore(it *table.Item) {
	c.rejections++
	if c.ignoring.Allow() {
		c.opts.Log.Warn("ignoring invalid limits item", "key", shortKey(it.Key), "version", it.Version, "rejections", c.rejections, "error", it.Flaw())
	}
}

// ignoredPause is the least time between two log lines about items that are not limits
// items.
const ignoredPause = 10 * time.Second

// shortKey returns the beginning of a key for the log: the key of an item that is not a
// limits item may have any length.
func shortKey(key string) string { return key[:min(len(key), 200)] }

// reject records that an item cannot be used, and logs each version once. The caller
// holds mu.
func (c *Catalog) reject(it table.Item, why error) {
	before, known := c.rejected[it.Key]
	if known && it.Version < before.version {
		return // the newer version may be waiting for a plan
	}
	c.rejected[it.Key] = rejection{it.Version, why}
	if known && before.version == it.Version {
		return
	}
	c.rejections++
	if it.Key == "" {
		c.opts.Log.Error("the items of the table make no limits together", "error", why)
		return
	}
	of := []any{"key", it.Key, "version", it.Version, "actor", it.Actor, "error", why}
	if _, good := c.active[it.Key]; good {
		c.opts.Log.Error("rejecting limits item, keeping its last good version", of...)
	} else {
		c.opts.Log.Error("rejecting limits item, and leaving it out", of...)
	}
}

// filter returns the items for which kind returns true.
func filter(items map[string]table.Item, kind func(table.Item) bool) map[string]table.Item {
	some := map[string]table.Item{}
	for key, it := range items {
		if kind(it) {
			some[key] = it
		}
	}
	return some
}

func allTenants(items map[string]table.Item) bool {
	for key := range items {
		if !table.IsTenant(key) {
			return false
		}
	}
	return true
}
