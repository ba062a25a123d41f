// Package nearlimit reports buckets that are nearly used up: those of limits that warn, see
// limit.Limit.Near. Each admitted request that finds its bucket so is counted, and the first one of a
// bucket and window is an event. Memory is bounded, and a decision without such a limit costs a few
// nanoseconds.
package nearlimit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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
	// most bounds the events of a second, each of which is a line of the log. A bucket that is left
	// out has its event when another request finds it nearly used up.
	most = 100
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
	// Count counts one request that found a bucket of the limit nearly used up.
	Count func(l *limit.Limit)
	// Send receives the events. It must not block, and may be nil.
	Send func(Event)
	Log  *slog.Logger // gets a line for each event
}

// Watch makes events of decisions. It is safe for concurrent use.
type Watch struct {
	opts Options
	seed maphash.Seed

	mu     sync.Mutex                    // guards the fields below
	latest *simplelru.LRU[uint64, int64] // the window of a bucket's last event, by the hash of its name
	second int64                         // of the last event
	sent   int                           // events in it
}

// New returns a watch.
func New(opts Options) *Watch {
	latest, _ := simplelru.NewLRU[uint64, int64](remembered, nil) // it errors for a size of 0 only
	return &Watch{opts: opts, seed: maphash.MakeSeed(), latest: latest}
}

// Observe looks for buckets that an admitted request left nearly used up. Now is in microseconds, see
// limiter.Observer.
func (w *Watch) Observe(req *limit.Request, now int64, d *limit.Decision, items []limit.Item) {
	if !d.Allowed {
		return // it took nothing
	}
	for i := range items {
		it := &items[i]
		if !it.Limit.Warns() || it.Source == limit.SourceNone || !it.Allowed || !it.Limit.Near(it.Remaining) {
			continue
		}
		w.opts.Count(it.Limit)
		if start := windowStart(it, now); w.isFirst(it, start, now) {
			w.report(newEvent(req, it, start, now))
		}
	}
}

// windowStart returns when the window began that holds now: the calendar's, or one as long as the period
// of the rate, counted from the epoch.
func windowStart(it *limit.Item, now int64) int64 {
	if b := it.Bounds; b != nil {
		for i := len(b) - 1; i >= 0; i-- {
			if b[i] <= now {
				return b[i]
			}
		}
	}
	return now - now%max(it.Limit.Params.Period, shortest)
}

// isFirst reports whether a bucket has no event yet in the window, and there is room for one more in
// this second.
func (w *Watch) isFirst(it *limit.Item, start, now int64) bool {
	hash := maphash.Bytes(w.seed, it.Name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, ok := w.latest.Get(hash); ok && last >= start {
		return false
	}
	if second := now / 1_000_000; second != w.second {
		w.second, w.sent = second, 0
	}
	if w.sent++; w.sent > most {
		return false
	}
	w.latest.Add(hash, start)
	return true
}

func newEvent(req *limit.Request, it *limit.Item, start, now int64) Event {
	l := it.Limit
	return Event{
		ID: eventID(it.Name, start), At: time.UnixMicro(now).UTC(), Limit: l.ID, Plan: l.Plan, Mode: l.Mode.String(),
		Tenant: strings.Clone(req.Tenant), Operation: strings.Clone(req.Op), // they alias the command
		Bucket: string(it.Name), Warn: l.DescribeWarn(), Capacity: l.Params.Capacity, Remaining: it.Remaining, ResetAfter: it.Reset,
	}
}

// eventID returns 32 hexadecimal digits of the SHA-256 hash of a bucket's name and its window.
func eventID(name []byte, start int64) string {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(append([]byte(nil), name...), uint64(start)))
	return hex.EncodeToString(sum[:16])
}

func (w *Watch) report(e Event) {
	w.opts.Log.Warn("bucket nearly used up", "limit", e.Limit, "plan", e.Plan, "mode", e.Mode, "tenant", e.Tenant, "op", e.Operation,
		"bucket", e.Bucket, "capacity", e.Capacity, "remaining", e.Remaining, "reset_after_ms", e.ResetAfter, "event", e.ID)
	if w.opts.Send != nil {
		w.opts.Send(e)
	}
}
