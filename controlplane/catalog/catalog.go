// Package catalog keeps limits in use that change item by item. It receives items, in
// any order and more than once, and compiles the newest of each into one set. It
// promises that an item that cannot be used changes nothing: its last good version
// stays in use, and so do all other items.
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

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/logthrottle"
	"github.com/limitgate/limitgate/limit"
)

// errOther is the error of a table that has items and none of limits.
var errOther = errors.New("the table has no limits and other items: name the table of limits, which is not that of --leases")

// ErrEmpty is returned for a table without a usable item.
var ErrEmpty = errors.New("the table has no limits yet: write some by limitgate limits push FILE dynamodb://TABLE")

// Options configure a Catalog.
type Options struct {
	Name string // of the table, for logs and errors
	// Compile makes a set of the parts of a limits file. All is true if these are all
	// parts; it is false if some are left out because they are rejected or do not
	// change.
	Compile func(parts map[string]json.RawMessage, all bool) (*limit.Set, error)
	Log     *slog.Logger
	Now     func() time.Time // nil means the clock of this machine
}

// Catalog holds the items of a table, and the set compiled from them. Any number of
// goroutines may use it; Set, Cells, Status and Digest never block.
//
// The items are those of the latest reading of the table, and newer ones that messages
// named. The set is compiled from the active items. An active item is the newest usable
// version of an item. It is older than the known version if that was rejected. It has
// no known version if only a snapshot has the item. Every key of unconfirmed and
// changed is a key of items, and every key of missing is a key of items or active. A
// rejection with the version of the known item is retried, unless it is errNoItem.
type Catalog struct {
	opts Options
	view atomic.Pointer[view] // for readers, which do not wait while a set is compiled

	mu          sync.Mutex             // guards the fields below, and orders the calls of apply
	items       map[string]table.Item  // the newest known versions
	unconfirmed map[string]unconfirmed // the items that only a message or a snapshot named
	changed     map[string]uint64      // the turns in which items changed since the table was read
	turn        uint64                 // of the latest messages, or of an item that was read
	reading     bool                   // a reading of the table is under way
	missing     map[string]time.Time   // since when a confirmed item has been missing in the table
	recheck     time.Time              // when to check whether a rejected item was corrected; zero for never
	dropped     bool                   // a message was dropped since the latest reading began

	unconfirmedBytes int   // the growth of the bodies in unconfirmed, about
	logged           int   // findings of the reading under way, see logsItem
	reverted         int64 // items that messages named and the table reverted

	active     map[string]table.Item // the parts of the set
	nonTenants map[string]bool       // the keys of active items that are not tenants
	set        *limit.Set
	apply      func(*limit.Set)
	grown      int                  // tenants compiled into the set since the last full compilation
	sum        table.Digest         // of items
	used       table.Digest         // of active
	ignoring   logthrottle.Throttle // of lines about items that are not limits items
	status
}

// view is the state of a catalog after the latest change.
type view struct {
	set    *limit.Set
	status Status
	digest table.Digest
	cells  table.Item
}

// status holds what a Status is made of.
type status struct {
	rejected   map[string]rejection
	ignored    map[string]rejection // items of the latest reading that are not limits items and not known, maxListed at most
	rejections int64                // versions of items
	retried    time.Time            // the last time that plans were retried
	stale      int64                // items that were older than the known ones
}

// rejection is an item that cannot be used, and why.
type rejection struct {
	version int64
	why     error
}

// compactAfter is how many tenants may be compiled into a set before everything is
// compiled anew. Until then the tenants that they replaced stay in memory, a kilobyte
// or so for each.
const compactAfter = 2000

// maxListed bounds the items that a status lists.
const maxListed = 20

// New returns an empty catalog.
func New(opts Options) *Catalog {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	c := &Catalog{
		opts: opts, active: map[string]table.Item{}, nonTenants: map[string]bool{}, apply: func(*limit.Set) {},
		ignoring: logthrottle.Throttle{Period: ignoredPause, Now: opts.Now},
	}
	c.clear()
	c.publish()
	return c
}

// clear forgets all items. The caller holds mu.
func (c *Catalog) clear() {
	c.items, c.unconfirmed, c.missing, c.sum = map[string]table.Item{}, map[string]unconfirmed{}, map[string]time.Time{}, table.Digest{}
	c.changed, c.unconfirmedBytes = map[string]uint64{}, 0
	c.rejected, c.ignored = map[string]rejection{}, map[string]rejection{}
}

// change locks the catalog for a change, and returns the function that publishes it and
// unlocks.
func (c *Catalog) change() (end func()) {
	c.mu.Lock()
	return func() {
		c.publish()
		c.mu.Unlock()
	}
}

// publish makes the present state visible to readers. The caller holds mu.
func (c *Catalog) publish() {
	c.view.Store(&view{c.set, c.describe(), c.sum, c.active[table.KeyCells]})
}

// compile makes a set of the items in use and the next ones; all reports that there are
// no others. If only tenants change, it compiles only those. The caller holds mu.
func (c *Catalog) compile(next map[string]table.Item, all bool) (*limit.Set, error) {
	small := c.set != nil && c.grown+len(next) <= compactAfter
	for key := range next {
		small = small && table.IsTenant(key)
	}
	parts, kept := map[string]json.RawMessage{}, maps.Keys(c.active)
	if small {
		kept = c.needed()
	}
	for key := range kept {
		if it, ok := c.active[key]; ok && !it.Deleted {
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

// compact makes the next compilation a full one. The caller holds mu.
func (c *Catalog) compact() { c.grown = compactAfter + 1 }

// needed returns the keys of the items that tenants are compiled with. The caller holds
// mu.
func (c *Catalog) needed() iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range c.nonTenants {
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

// Recompile compiles the same items again, for when Compile returns a different set for
// them. On an error the old set stays in use.
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
	c.install(set, nil)
	return nil
}

// Set returns the limits in use, nil before there are any.
func (c *Catalog) Set() *limit.Set { return c.view.Load().set }

// OnChange sets the function that receives later sets, one at a time.
func (c *Catalog) OnChange(apply func(*limit.Set)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apply = apply
}

// Cells returns the item in use that lists the cells. Ok is false if there is none.
func (c *Catalog) Cells() (it table.Item, ok bool) {
	it = c.view.Load().cells
	return it, it.Version > 0 && !it.Deleted
}

// uses reports whether the version of an item is in use.
func (c *Catalog) uses(it *table.Item) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.active[it.Key].Version == it.Version
}

// Items returns the items in use, tombstones included.
func (c *Catalog) Items() []table.Item {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.active), func(a, b table.Item) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
}

// Digest returns the digest of the known items, to be compared with that of the table.
func (c *Catalog) Digest() table.Digest { return c.view.Load().digest }

// Status describes a catalog.
type Status struct {
	Version string
	// Error lists the items that cannot be used, and why; it is empty if all can be
	// used.
	Error      string
	Rejections int64 // versions of items that could not be used, since the start
	Stale      int64 // items that arrived after newer ones
}

// Status returns the present status.
func (c *Catalog) Status() Status { return c.view.Load().status }

// describe returns the present status. The caller holds mu.
func (c *Catalog) describe() Status {
	st := Status{Rejections: c.rejections, Stale: c.stale}
	if c.set != nil {
		st.Version = c.set.Version
	}
	all := maps.Clone(c.ignored)
	maps.Copy(all, c.rejected)
	for i, key := range slices.Sorted(maps.Keys(all)) {
		if i == maxListed {
			st.Error += fmt.Sprintf("; and %d more", len(all)-i)
			break
		}
		if st.Error != "" {
			st.Error += "; "
		}
		st.Error += fmt.Sprintf("%s, version %d: %s", shortKey(key), all[key].version, all[key].why)
	}
	return st
}
