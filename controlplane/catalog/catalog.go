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

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
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
// goroutines may use it; Set, Cells, Status and Digest never block.
//
// The items are those of the latest reading of the table, with newer ones that messages named.
// The set is made of the good ones: of each item the newest version that can be used, which is
// older than the known one where that is rejected, and is there alone where only a snapshot has
// one. Every key of told and changed is a key of items, and every key of missing one of items or
// good. A rejection with the version of the known item is tried again, unless it is errNoItem.
type Catalog struct {
	opts Options
	view atomic.Pointer[view] // for readers that do not wait while a set is compiled

	mu          sync.Mutex             // guards the fields below, and orders the calls of apply
	items       map[string]table.Item  // as the table has them, as far as is known
	unconfirmed map[string]unconfirmed // of items, those that only a message or a snapshot named
	changed     map[string]uint64      // the turns in which items changed, since the table was read
	turn        uint64                 // of the latest messages, or of an item that was read
	reading     bool                   // the table is being read
	missing     map[string]time.Time   // of items, since when a confirmed one is not in the table
	recheck     time.Time              // when it is to be read whether something was put right, or zero
	dropped     bool                   // a message was dropped since the table began to be read

	unconfirmedBytes int   // by how much the bodies in told are larger than those before, about
	logged           int   // items of the reading of the table that goes on, see logsItem
	reverted         int64 // items that messages named and the table took back

	active     map[string]table.Item // the parts of the set
	nonTenants map[string]bool       // the keys of good that are not of tenants
	set        *limit.Set
	apply      func(*limit.Set)
	grown      int          // tenants that were compiled beside the set since all was
	sum        table.Digest // of items
	used       table.Digest // of good
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
	ignored    time.Time // when an item that is none of limits was logged
}

// rejection is an item that cannot be used, and why.
type rejection struct {
	version int64
	why     error
}

// compactAfter is how many tenants may be compiled beside a set before all is compiled
// anew: until then what they replaced is kept, a kilobyte or so for each.
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
	}
	c.clear()
	c.publish()
	return c
}

// clear forgets all items. The caller holds mu.
func (c *Catalog) clear() {
	c.items, c.unconfirmed, c.missing, c.sum = map[string]table.Item{}, map[string]unconfirmed{}, map[string]time.Time{}, table.Digest{}
	c.changed, c.unconfirmedBytes = map[string]uint64{}, 0
	c.rejected = map[string]rejection{}
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
func (c *Catalog) publish() {
	c.view.Store(&view{c.set, c.describe(), c.sum, c.active[table.KeyCells]})
}

// compile makes a set of the items in use and the next ones; all says that those are all
// that there are. Where only tenants change it compiles no others. The caller holds mu.
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

// compact has the next compilation be of all that there is. The caller holds mu.
func (c *Catalog) compact() { c.grown = compactAfter + 1 }

// needed returns the keys of what tenants are compiled with. The caller holds mu.
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
	c.install(set, nil)
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
	return c.active[it.Key].Version == it.Version
}

// Items returns what the limits in use are made of, tombstones included.
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
		if i == maxListed {
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
