// Package catalog keeps limits in use that change item by item: it is told items, in any
// order and more than once, and puts the newest of each into one set. It promises that
// what cannot be used changes nothing: the last good item stays, and so do all others.
package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/table"
)

// ErrEmpty is returned for a table without a usable item.
var ErrEmpty = errors.New("the table has no limits yet: push a file into it")

// Options configure a Catalog.
type Options struct {
	Name string // of the table, for people
	// Compile makes a set of the parts of a limits file: of all that there are, or of some
	// while others cannot be used, or do not change.
	Compile func(parts map[string]json.RawMessage, all bool) (*limit.Set, error)
	Log     *slog.Logger
	Now     func() time.Time // nil means the clock of this machine
}

// Catalog holds the items of a table, and the set that they make. Any number of
// goroutines may use it; Set, Cells, Status and Digest wait for nobody.
type Catalog struct {
	opts Options
	view atomic.Pointer[view] // for those who do not wait while a set is compiled

	mu    sync.Mutex            // guards what follows, and that sets are applied one after the other
	items map[string]table.Item // the newest that were told
	good  map[string]table.Item // what the set is made of
	rest  map[string]bool       // which of good are no tenants
	gone  map[string]time.Time  // when what is good was written that the table does not have
	set   *limit.Set
	apply func(*limit.Set)
	grown int          // tenants that were compiled beside the set since all was
	sum   table.Digest // of items
	used  table.Digest // of good
	status
}

// view is what a catalog was after the latest change.
type view struct {
	set    *limit.Set
	status Status
	digest table.Digest
	cells  table.Item
}

// status is what there is to tell of a catalog.
type status struct {
	rejected   map[string]rejection
	rejections int64     // versions of items
	retried    time.Time // the last time that plans were tried again
	stale      int64     // items that were older than what was known
}

// rejection is an item that cannot be used, and why.
type rejection struct {
	version int64
	why     error
}

// compactAfter is how many tenants may be compiled beside a set before all is compiled
// anew: until then what they replaced is kept, a kilobyte or so for each.
const compactAfter = 2000

// maxTold bounds the items that a status lists.
const maxTold = 20

// New returns an empty catalog.
func New(opts Options) *Catalog {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	c := &Catalog{
		opts: opts, items: map[string]table.Item{}, good: map[string]table.Item{}, rest: map[string]bool{}, gone: map[string]time.Time{}, apply: func(*limit.Set) {},
		status: status{rejected: map[string]rejection{}},
	}
	c.publish()
	return c
}

// change begins a change of the catalog, and returns what ends it.
func (c *Catalog) change() (end func()) {
	c.mu.Lock()
	return func() {
		c.publish()
		c.mu.Unlock()
	}
}

// publish shows what the catalog is now. The caller holds mu.
func (c *Catalog) publish() { c.view.Store(&view{c.set, c.describe(), c.sum, c.good[table.KeyCells]}) }

// Load takes the items of a whole table. It fails when no set can be made of them, and
// then the catalog stays empty.
func (c *Catalog) Load(items []table.Item) error {
	defer c.change()()
	c.take(items)
	if c.set != nil {
		return nil
	}
	why := c.rejected[""].why
	if why == nil || !slices.ContainsFunc(items, func(it table.Item) bool { return table.IsPart(it.Key) && !it.Deleted }) {
		why = ErrEmpty
	}
	c.items, c.sum, c.rejected = map[string]table.Item{}, table.Digest{}, map[string]rejection{}
	return fmt.Errorf("load %s: %w", c.opts.Name, why)
}

// Recall takes older versions of items whose newest one cannot be used.
func (c *Catalog) Recall(items []table.Item) {
	defer c.change()()
	c.recall(items)
}

// Apply takes items that have changed, and returns those that were new. It is to be called
// now and then also without any: some that could not be used may be by then.
func (c *Catalog) Apply(items []table.Item) (fresh []table.Item) {
	defer c.change()()
	return c.take(items)
}

// Versions returns the versions of all items that were told.
func (c *Catalog) Versions() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	versions := make(map[string]int64, len(c.items))
	for key := range c.items {
		versions[key] = c.items[key].Version
	}
	return versions
}

// ApplyAll is Apply with the items of a whole table, that was read after there were the
// versions before: what was known by then and is newer than what the table has is not of the
// table, but of a backup's future or of somebody who could send messages, and is dropped for
// what the table has. What the table has not at all, not even as a tombstone, changes no limit:
// it stays in use, and counts no more. What was no item of limits and is not there any more is
// forgotten.
func (c *Catalog) ApplyAll(items []table.Item, before map[string]int64) (fresh []table.Item) {
	defer c.change()()
	there := map[string]bool{}
	for i := range items {
		it := &items[i]
		there[it.Key] = true
		known, ok := c.items[it.Key]
		if ok && it.IsLimits() && known.Version > it.Version && before[it.Key] == known.Version {
			c.opts.Log.Error("an item is older in the table than what was told, and is as there", "key", it.Key, "version", it.Version, "told", known.Version)
			c.forget(&known)
			delete(c.gone, it.Key)
		}
	}
	for key, it := range c.items {
		if !there[key] && !it.Deleted && before[key] == it.Version {
			c.opts.Log.Error("an item is not in the table, and what is used of it stays", "key", key, "version", it.Version)
			c.forget(&it)
			c.gone[key] = it.At
		}
	}
	maps.DeleteFunc(c.rejected, func(key string, _ rejection) bool {
		_, known := c.items[key]
		return key != "" && !known && !there[key]
	})
	return c.take(items)
}

// forget has it that an item was never told. What the set is made of stays. The caller holds
// mu.
func (c *Catalog) forget(it *table.Item) {
	c.sum.Remove(it)
	delete(c.items, it.Key)
	delete(c.rejected, it.Key)
}

// take takes items that are newer than what is known. The caller holds mu.
func (c *Catalog) take(items []table.Item) (fresh []table.Item) {
	next := c.newer(items)
	if len(next) == 0 {
		if c.set != nil && c.due(c.waiting()) {
			c.use(next)
		}
		c.recall(items)
		return nil
	}
	for key, it := range next {
		if was, ok := c.items[key]; ok {
			c.sum.Remove(&was)
		}
		c.sum.Add(&it)
		c.items[key] = it
		delete(c.gone, key)
	}
	fresh = slices.Collect(maps.Values(next))
	c.use(next)
	c.recall(items)
	return fresh
}

// newer returns the newest of the items, where they are newer than what is known. The
// caller holds mu.
func (c *Catalog) newer(items []table.Item) map[string]table.Item {
	next := map[string]table.Item{}
	for _, it := range items {
		known, ok := c.items[it.Key]
		if known.Deleted && c.opts.Now().Sub(known.At) > table.TombstoneTTL {
			ok = false // the table has forgotten it, and begins anew
		}
		if newer, seen := next[it.Key]; seen {
			known, ok = newer, true
		}
		switch {
		case !it.IsLimits():
			c.refuse(it)
		case ok && it.Version <= known.Version:
			if it.Version < known.Version {
				c.stale++
			} else if errors.Is(c.rejected[it.Key].why, errNoItem) && c.good[it.Key].Version == it.Version {
				delete(c.rejected, it.Key) // somebody has put it right
			}
		case !ok && it.At.Before(c.gone[it.Key]): // a late message about what is gone
			c.stale++
		default:
			next[it.Key] = it
		}
	}
	return next
}

// compile makes a set of the items in use and the next ones; all says that those are all
// that there are. Where only tenants change it compiles no others. The caller holds mu.
func (c *Catalog) compile(next map[string]table.Item, all bool) (*limit.Set, error) {
	small := c.set != nil && c.grown+len(next) <= compactAfter
	for key := range next {
		small = small && table.IsTenant(key)
	}
	parts, kept := map[string]json.RawMessage{}, maps.Keys(c.good)
	if small {
		kept = c.needed()
	}
	for key := range kept {
		if it, ok := c.good[key]; ok && !it.Deleted {
			parts[key] = it.Body
		}
	}
	var removed []string
	for key, it := range next {
		delete(parts, key)
		if !it.Deleted {
			parts[key] = it.Body
		} else if table.IsTenant(key) {
			removed = append(removed, table.Name(key))
		}
	}
	set, err := c.opts.Compile(parts, all && !small)
	if err != nil {
		return nil, err
	}
	if small {
		if changed, ok := c.set.Change(set, removed, ""); ok {
			c.grown += len(next)
			return changed, nil
		}
		c.compact()
		return c.compile(next, all)
	}
	c.grown = 0
	return set, nil
}

// compact has the next compilation be of all that there is. The caller holds mu.
func (c *Catalog) compact() { c.grown = compactAfter + 1 }

// needed returns the keys of what tenants are compiled with. The caller holds mu.
func (c *Catalog) needed() iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range c.rest {
			if !yield(key) {
				return
			}
		}
		for _, name := range c.set.Named() {
			if !yield(table.PrefixTenant + name) {
				return
			}
		}
	}
}

// Recompile makes the set anew from the same items, for when Compile makes something else
// of them by now. With an error the set stays.
func (c *Catalog) Recompile() error {
	defer c.change()()
	if c.set == nil {
		return nil
	}
	c.compact()
	set, err := c.compile(nil, true)
	if err != nil {
		return fmt.Errorf("compile %s anew: %w", c.opts.Name, err)
	}
	c.adopt(set, nil)
	return nil
}

// Set returns the limits in use, nil before there are any.
func (c *Catalog) Set() *limit.Set { return c.view.Load().set }

// OnChange has later sets handed to apply, one at a time.
func (c *Catalog) OnChange(apply func(*limit.Set)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apply = apply
}

// Cells returns the item that says which cells there are, of those that the limits in use are
// made of. Ok is false where there is none.
func (c *Catalog) Cells() (it table.Item, ok bool) {
	it = c.view.Load().cells
	return it, it.Version > 0 && !it.Deleted
}

// uses reports whether the limits in use are made of an item.
func (c *Catalog) uses(it *table.Item) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.good[it.Key].Version == it.Version
}

// Items returns what the limits in use are made of, tombstones included.
func (c *Catalog) Items() []table.Item {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.good), func(a, b table.Item) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
}

// Digest tells what was told to the catalog, to be compared with the table's.
func (c *Catalog) Digest() table.Digest { return c.view.Load().digest }

// Status describes a catalog.
type Status struct {
	Version string
	// Error says which items cannot be used, and why; empty when all are.
	Error      string
	Rejections int64 // versions of items that could not be used, since the start
	Stale      int64 // items that came after newer ones
}

// Status describes the catalog.
func (c *Catalog) Status() Status { return c.view.Load().status }

// describe describes the catalog. The caller holds mu.
func (c *Catalog) describe() Status {
	st := Status{Rejections: c.rejections, Stale: c.stale}
	if c.set != nil {
		st.Version = c.set.Version
	}
	for i, key := range slices.Sorted(maps.Keys(c.rejected)) {
		if i == maxTold {
			st.Error += fmt.Sprintf("; and %d more", len(c.rejected)-i)
			break
		}
		if st.Error != "" {
			st.Error += "; "
		}
		st.Error += fmt.Sprintf("%s, version %d: %s", key, c.rejected[key].version, c.rejected[key].why)
	}
	return st
}
