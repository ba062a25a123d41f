// Package nearlimit reports buckets that are nearly used up: those of limits that warn, see
// limit.Limit.Near. Each admitted request that finds its bucket so is counted, and the first one of a
// bucket and window is an event. Memory is bounded, and a decision without such a limit costs a few
// nanoseconds.
package nearlimit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/limitgate/limitgate/limit"
)

const (
	// shortest is the shortest window, in microseconds: a bucket that refills in a second would
	// otherwise be an event each second.
	shortest = 60_000_000
	// remembered bounds the buckets whose events are remembered, some 100 bytes each. A bucket that
	// was forgotten has another event in its window, with the same id.
	remembered = 16_384
	// most bounds the events of a second, each of which is a line of the log, and mostOfTenant those of
	// a limit and tenant in a minute, so that one tenant with many buckets leaves room for others. A
	// bucket that is left out has its event when another request finds it nearly used up.
	most         = 100
	mostOfTenant = 10
	// tenants bounds the limits and tenants whose events are counted.
	tenants = 4096
)

// Event is that a bucket is nearly used up.
type Event struct {
	// ID is the same for the events of one bucket and window of all proxies that share it.
	ID string    `json:"-"`
	At time.Time `json:"-"`
	// Limit, Plan and Mode are those of the limit; Plan is "" for a shared one.
	Limit string `json:"limit"`
	Plan  string `json:"plan"`
	Mode  string `json:"mode"`
	// Tenant and Operation are those of the request that found it so.
	Tenant    string `json:"tenant"`
	Operation string `json:"op"`
	Bucket    string `json:"bucket"` // its name, in which an address is hashed
	Warn      string `json:"warn"`   // the part of the capacity from which the limit warns
	// Capacity and Remaining are in units, ResetAfter is in milliseconds.
	Capacity   int64 `json:"capacity"`
	Remaining  int64 `json:"remaining"`
	ResetAfter int64 `json:"reset_after_ms"`
}

// Options configure a Watch.
type Options struct {
	// Scope is the same for the proxies that share their buckets, and a part of the ids of events.
	Scope string
	// Count counts one request that found a bucket of a limit of the set nearly used up.
	Count func(set *limit.Set, l *limit.Limit)
	// Send receives the events, and returns false for one that it has no room for. It must not block,
	// and may be nil.
	Send func(Event) (taken bool)
	Log  *slog.Logger // gets a line for each event
}

// Watch makes events of decisions. It is safe for concurrent use.
type Watch struct {
	opts Options
	seed maphash.Seed

	mu       sync.Mutex                      // guards the fields below
	latest   *simplelru.LRU[uint64, int64]   // the window of a bucket's last event
	tenants  *simplelru.LRU[uint64, *budget] // by limit and tenant
	thisTime budget                          // of this second
}

// budget counts the events of a period.
type budget struct {
	period int64
	events int
}

// take reports whether there is room for one more event in a period that has most of them.
func (b *budget) take(period int64, most int) bool {
	if period != b.period {
		b.period, b.events = period, 0
	}
	b.events++
	return b.events <= most
}

// New returns a watch.
func New(opts Options) *Watch {
	w := &Watch{opts: opts, seed: maphash.MakeSeed()}
	w.latest, _ = simplelru.NewLRU[uint64, int64](remembered, nil) // it errors for a size of 0 only
	w.tenants, _ = simplelru.NewLRU[uint64, *budget](tenants, nil)
	return w
}

// Observe looks for buckets that an admitted request left nearly used up. Now is in microseconds, see
// limiter.Observer.
func (w *Watch) Observe(set *limit.Set, req *limit.Request, now int64, d *limit.Decision, items []limit.Item) {
	if !d.Allowed {
		return // it took nothing
	}
	for i := range items {
		it := &items[i]
		if !it.Limit.Warns() || !it.Allowed || !knowsBucket(it) || !it.Limit.Near(left(it)) {
			continue
		}
		if i > 0 && items[i-1].Limit == it.Limit {
			continue // the bucket of the secret before a rotation
		}
		w.opts.Count(set, it.Limit)
		w.observe(req, it, now)
	}
}

// knowsBucket reports whether an item has the units of the bucket itself. The share of one proxy says
// nothing about it.
func knowsBucket(it *limit.Item) bool {
	return !it.Local && (it.Source == limit.SourceStore || it.Source == limit.SourceLease)
}

// left returns the units that are left of a bucket, those on lease included.
func left(it *limit.Item) int64 { return it.Remaining + it.LeaseGranted*it.Cost }

// observe makes an event of a bucket that is nearly used up, unless it has one.
func (w *Watch) observe(req *limit.Request, it *limit.Item, now int64) {
	hash, start := w.hash(it), windowStart(it, now)
	if !w.isFirst(hash, req.Tenant, it, start, now) {
		return
	}
	e := w.newEvent(req, it, start, now)
	if w.opts.Send != nil && !w.opts.Send(e) {
		w.mu.Lock()
		w.latest.Remove(hash) // so that a later request makes the event
		w.mu.Unlock()
		return
	}
	w.opts.Log.Warn("bucket nearly used up", "limit", e.Limit, "plan", e.Plan, "mode", e.Mode, "tenant", e.Tenant, "op", e.Operation,
		"bucket", e.Bucket, "capacity", e.Capacity, "remaining", e.Remaining, "reset_after_ms", e.ResetAfter, "event", e.ID)
}

// hash identifies a bucket and the limit that it has now: after a change it may warn again.
func (w *Watch) hash(it *limit.Item) uint64 {
	return maphash.Bytes(w.seed, it.Name) + 3*maphash.Comparable(w.seed, it.Limit.Params) + 5*maphash.String(w.seed, it.Limit.DescribeWarn())
}

// windowStart returns when the window began: that in which the units were charged, by the store's clock,
// or one as long as the period of the rate that holds now, counted from the epoch.
func windowStart(it *limit.Item, now int64) int64 {
	if it.Window > 0 {
		return it.Window - it.Window%shortest
	}
	return now - now%max(it.Limit.Window().Microseconds(), shortest) // the parameters of a token bucket are reduced
}

// isFirst reports whether a bucket has no event yet in the window, and there is room for one more.
func (w *Watch) isFirst(hash uint64, tenant string, it *limit.Item, start, now int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, ok := w.latest.Get(hash); ok && last >= start {
		return false
	}
	key := maphash.String(w.seed, tenant) + 3*maphash.String(w.seed, it.Limit.ID)
	own, ok := w.tenants.Get(key)
	if !ok {
		own = new(budget)
		w.tenants.Add(key, own)
	}
	if !own.take(now/shortest, mostOfTenant) || !w.thisTime.take(now/1_000_000, most) {
		return false
	}
	w.latest.Add(hash, start)
	return true
}

func (w *Watch) newEvent(req *limit.Request, it *limit.Item, start, now int64) Event {
	l := it.Limit
	return Event{
		ID: w.eventID(it, start), At: time.UnixMicro(now).UTC(), Limit: l.ID, Plan: l.Plan, Mode: l.Mode.String(),
		Tenant: strings.Clone(req.Tenant), Operation: strings.Clone(req.Op), // they alias the command
		Bucket: string(it.Name), Warn: l.DescribeWarn(), Capacity: l.Params.Capacity, Remaining: left(it), ResetAfter: it.Reset,
	}
}

// eventID returns 32 hexadecimal digits of the SHA-256 hash of the scope, the bucket's name and limit, and
// its window.
func (w *Watch) eventID(it *limit.Item, start int64) string {
	p := &it.Limit.Params
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d %d %s %d", w.opts.Scope, it.Name, p.Count, p.Period, p.Capacity, it.Limit.DescribeWarn(), start))
	return hex.EncodeToString(sum[:16])
}
