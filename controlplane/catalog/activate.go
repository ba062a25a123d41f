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

// retryEvery is how often plans that could not be used are tried again, for nothing.
const retryEvery = 5 * time.Second

// activate puts new items into the set, and tries those again that could not be used and may
// be by now: a tenant may have come before its plan. Whatever cannot be used is left out,
// and all the rest is. The caller holds mu.
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
			c.reject(table.Item{}, c.findCulprit(first, err)) // none by itself
			return
		}
	}
	for len(next) > 0 {
		why := map[string]error{}
		// What others need comes first, and goes last.
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

// isPlanOrShared reports whether an item is of what has to be usable before there is a set: without
// a plan its tenants would have the limits of another one.
func isPlanOrShared(key string) bool { return table.IsPart(key) && !table.IsTenant(key) }

// blameMost bounds the items of which one is looked for that is to blame: each of them costs
// a compilation of all others.
const blameMost = 200

// findCulprit returns why items cannot be used, with the name of one without which the others can.
// The caller holds mu.
func (c *Catalog) findCulprit(items map[string]table.Item, why error) error {
	if len(items) > blameMost {
		return why
	}
	for _, key := range slices.Sorted(maps.Keys(items)) {
		if _, err := c.compile(filter(items, func(it table.Item) bool { return it.Key != key }), false); err == nil {
			return fmt.Errorf("%s: %w", key, why)
		}
	}
	return why
}

// lacks reports whether one of those is none of limits. The caller holds mu.
func (c *Catalog) lacks() bool {
	for key, r := range c.rejected {
		if isPlanOrShared(key) && errors.Is(r.why, errNoItem) {
			c.reject(table.Item{}, fmt.Errorf("%s: %w", key, r.why))
			return true
		}
	}
	return false
}

// restoreOlder uses items that are older than what is known where that cannot be used, and newer
// than what is in use instead. The caller holds mu.
func (c *Catalog) restoreOlder(items []table.Item) {
	if c.set == nil || len(c.rejected) == 0 {
		return
	}
	items = slices.SortedFunc(slices.Values(items), func(a, b table.Item) int { return cmp.Compare(a.Version, b.Version) })
	plans := false
	for _, it := range items {
		newest, unusable := c.rejected[it.Key]
		unsigned := unusable && newest.version == 0 // what has a version is newer
		if !it.IsLimits() || !unsigned && it.Version >= newest.version || it.Version <= c.active[it.Key].Version {
			continue
		}
		if c.useOlder(it, newest) {
			plans = plans || !table.IsTenant(it.Key)
		}
	}
	if plans { // others may have waited for them
		c.retried = time.Time{}
		c.activate(map[string]table.Item{})
	}
}

// useOlder uses an item in the place of a newer one that cannot be used, and reports whether that
// is possible. The caller holds mu.
func (c *Catalog) useOlder(it table.Item, newest rejection) bool {
	set, err := c.compile(map[string]table.Item{it.Key: it}, true)
	if err != nil {
		return false
	}
	c.install(set, map[string]table.Item{it.Key: it})
	c.rejected[it.Key] = newest
	return true
}

// waiting returns the items that could not be used and may be later. The caller holds mu.
func (c *Catalog) waiting() map[string]table.Item {
	again := map[string]table.Item{}
	for key, r := range c.rejected {
		if it, ok := c.items[key]; ok && it.Version == r.version && !errors.Is(r.why, errNoItem) {
			again[key] = it
		}
	}
	return again
}

// due reports whether items that could not be used are to be tried again although only
// tenants changed: those need plans and not each other, but a plan may wait for a tenant to
// leave it. To try a plan costs as much as to load all. The caller holds mu.
func (c *Catalog) due(again map[string]table.Item) bool {
	return !allTenants(again) && c.opts.Now().Sub(c.retried) >= retryEvery
}

// bisect uses as many of the items as can be, half by half, and notes why not the others.
// The caller holds mu.
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

// install makes a set the one in use. The caller holds mu.
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
	c.publish() // before anybody decides by it
	c.apply(set)
}

// errNoItem is why what nobody signed cannot be used.
var errNoItem = errors.New("it is no item of limits")

// refuse notes what is no item of limits. Only what stands in the place of one is kept in
// mind: of all else there may be any number. The caller holds mu.
func (c *Catalog) refuse(it table.Item) {
	if _, known := c.items[it.Key]; known || c.set == nil && table.IsKey(it.Key) {
		c.reject(it, errNoItem)
		return
	}
	c.ignore(&it)
}

// ignore counts an item that is none of limits. The caller holds mu.
func (c *Catalog) ignore(it *table.Item) {
	c.rejections++
	if now := c.opts.Now(); now.Sub(c.ignored) >= ignoredPause || now.Before(c.ignored) {
		c.ignored = now
		c.opts.Log.Warn("an item is none of limits, and is not used", "key", shortKey(it.Key), "version", it.Version, "so far", c.rejections)
	}
}

// ignoredPause is the least time between two log lines about items that are none of limits.
const ignoredPause = 10 * time.Second

// shortKey returns the beginning of a key for the log: one that is none of limits may have any
// length.
func shortKey(key string) string { return key[:min(len(key), 200)] }

// reject notes that an item cannot be used, and tells it once. The caller holds mu.
func (c *Catalog) reject(it table.Item, why error) {
	before, known := c.rejected[it.Key]
	if known && it.Version < before.version {
		return // what is newer may be waiting for a plan
	}
	c.rejected[it.Key] = rejection{it.Version, why}
	if known && before.version == it.Version {
		return
	}
	c.rejections++
	c.opts.Log.Error("an item of the limits cannot be used, its last good version stays", "key", it.Key, "version", it.Version, "actor", it.Actor, "error", why)
}

// filter returns the items that are of a kind.
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
