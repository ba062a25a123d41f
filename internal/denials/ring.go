// Package denials keeps a sample of the last denials, so that an operator sees which limit denied
// which tenant and why. Memory is bounded, addresses are hashed, and a decision that denies
// nothing costs a few nanoseconds.
package denials

import (
	"hash/maphash"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/limit"
)

const (
	// Kept is the number of denials that a Ring keeps.
	Kept = 256
	// spacing is the mean time between two denials of the sample, in microseconds, and atOnce how many may come without
	// it, such as those of a pipeline: they bound what many different ones cost, and the lines of the log.
	spacing = 10_000
	atOnce  = 50
	// repeat is the shortest time between two denials of one limit, tenant and operation, in
	// microseconds, so that a flood does not push out the others.
	repeat = 1_000_000
)

// Denial is a request that a limit denied, or that one in shadow mode would have.
type Denial struct {
	At        time.Time
	Tenant    string
	Operation string
	// Key is the beginning of the key of a command of another limiter, which has no tenant; "" of other requests.
	Key string
	// Address is the hash of the client's address, or "".
	Address string
	// Limit and Plan are those of the limit that denied, or "" if the bound of all tenants together did. Mode is
	// enforce or shadow.
	Limit, Plan, Mode string
	Source            string // the word of a limit.Source
	// Cost, Capacity and Remaining are units of the bucket; of a ban, of that bound, and of a request without a
	// dimension that its limit demands, the last two are 0, and Cost is that of the request.
	Cost, Capacity, Remaining int64
	// RetryAfter is in milliseconds, or -1 if the request can never be admitted.
	RetryAfter int64
	// Trial reports that limits on trial decided for the tenant.
	Trial bool
}

// Ring keeps a sample of the last denials: a hundred a second and up to fifty more at once, and one a second of each
// limit, tenant and operation. It is safe for concurrent use.
type Ring struct {
	addrs  *limit.AddrHasher
	log    *slog.Logger
	seed   maphash.Seed
	booked atomic.Int64     // until when the sample is full but for atOnce denials, in microseconds
	recent [4 * Kept]recent // by hash

	mu   sync.Mutex // guards the fields below, and writes to booked and recent
	kept [Kept]Denial
	next int // the number of denials so far
}

// recent is when a denial with a hash was recorded, in microseconds.
type recent struct {
	hash atomic.Uint64
	at   atomic.Int64
}

// New returns an empty ring, which hashes addresses by addrs. Unless log is nil, it gets a line for
// each denial of the sample.
func New(addrs *limit.AddrHasher, log *slog.Logger) *Ring {
	return &Ring{addrs: addrs, log: log, seed: maphash.MakeSeed()}
}

// Observe records a decision if it is a denial of the sample, see limiter.Observer.
func (r *Ring) Observe(set *limit.Set, req *limit.Request, now int64, d *limit.Decision, items []limit.Item) {
	denying := -1
	if d.Allowed {
		if denying = wouldDeny(items); denying < 0 {
			return
		}
	} else if d.Item >= 0 && d.Item < len(items) && !d.Capped {
		denying = d.Item
	}
	if !r.inSample(req, denying, items, now) {
		return
	}
	found := Denial{At: time.UnixMicro(now), Tenant: req.Tenant, Operation: req.Op, Mode: limit.ModeEnforce.String(), Source: d.Source.String(), Cost: req.Cost, RetryAfter: d.RetryAfter}
	found.Trial = !req.CarriesLimits() && set.Tries(req.Tenant)
	if denying >= 0 {
		it := &items[denying]
		found.Limit, found.Plan, found.Mode = it.Limit.ID, it.Limit.Plan, it.Limit.Mode.String()
		found.Source = it.Source.String()
		if !it.Refused() { // a bucket counts
			found.Cost, found.Capacity, found.Remaining = it.Cost, it.Limit.Params.Capacity, it.Remaining
		}
		if d.Allowed {
			found.RetryAfter = it.Wait
		}
	}
	r.record(&found, req)
}

// wouldDeny returns the index of the first item that denies without effect, or -1.
func wouldDeny(items []limit.Item) int {
	for i := range items {
		if items[i].Denies() && !items[i].Enforced() {
			return i
		}
	}
	return -1
}

// inSample reports whether a denial is one of the sample. Repeats are left out first, so that they
// take no place of others.
func (r *Ring) inSample(req *limit.Request, denying int, items []limit.Item, now int64) bool {
	hash := maphash.String(r.seed, req.Tenant) + 3*maphash.String(r.seed, req.Op) + 7*maphash.String(r.seed, req.Key)
	if denying >= 0 {
		hash += 5 * maphash.String(r.seed, items[denying].Limit.ID)
	}
	seen := &r.recent[hash%uint64(len(r.recent))]
	if seen.repeats(hash, now) || r.isFull(now) { // most of a flood takes no lock
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if seen.repeats(hash, now) || r.isFull(now) {
		return false
	}
	r.booked.Store(r.from(now) + spacing)
	seen.hash.Store(hash)
	seen.at.Store(now)
	return true
}

// repeats reports whether a denial with the hash was recorded a moment ago.
func (r *recent) repeats(hash uint64, now int64) bool {
	since := now - r.at.Load()
	return r.hash.Load() == hash && since >= 0 && since < repeat
}

// from returns the time that the next denial books from, by the generic cell rate algorithm.
func (r *Ring) from(now int64) int64 {
	booked := r.booked.Load()
	if booked-now > 2*atOnce*spacing { // the clock was set back
		return now
	}
	return max(booked, now)
}

// isFull reports whether the sample has no room for a denial.
func (r *Ring) isFull(now int64) bool { return r.from(now)+spacing-now > atOnce*spacing }

// record keeps a denial.
func (r *Ring) record(found *Denial, req *limit.Request) {
	found.Tenant, found.Operation = strings.Clone(found.Tenant), strings.Clone(found.Operation) // they alias the command
	if req.Inline != nil {
		found.Key = limit.Shorten(strings.Clone(req.Key))
	}
	if req.Addr.IsValid() && r.addrs != nil {
		found.Address = string(r.addrs.Append(nil, req.Addr))
	}
	r.mu.Lock()
	r.kept[r.next%Kept] = *found
	r.next++
	r.mu.Unlock()
	if r.log != nil {
		r.log.Info("denial", "limit", found.Limit, "plan", found.Plan, "mode", found.Mode, "tenant", found.Tenant, "op", found.Operation,
			"address", found.Address, "source", found.Source, "retry_after_ms", found.RetryAfter, "trial", found.Trial)
	}
}

// Last returns the last n denials, the newest first.
func (r *Ring) Last(n int) []Denial {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := make([]Denial, 0, min(n, r.next, Kept))
	for i := r.next - 1; len(last) < cap(last); i-- {
		last = append(last, r.kept[i%Kept])
	}
	return last
}
