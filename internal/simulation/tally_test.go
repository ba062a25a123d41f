package simulation

import (
	"slices"

	"github.com/limitgate/limitgate/limit"
)

// kind is what a tenant asks of its limit.
type kind uint8

const (
	tight  kind = iota // twice what there is
	wide               // a part of it
	leased             // twice what there is, which may be leased
)

// tenant is one tenant of the fleet, and what became of its requests.
type tenant struct {
	name   string
	kind   kind
	shard  int
	rate   float64 // of its requests, a second
	params limit.Params
	// admitted are the units that were admitted, and local those of them that
	// backstops did.
	admitted, local histogram
	denied          int
	sources         [limit.NumSources]int
}

// count counts a decision that was made at an instant.
func (t *tenant) count(d *limit.Decision, at, units int64) {
	t.sources[d.Source]++
	if !d.Allowed {
		t.denied++
		return
	}
	t.admitted.addMany(at, int(units))
	if d.Source == limit.SourceBackstop {
		t.local.addMany(at, int(units))
	}
}

// perSecond is the rate of the tenant's limit.
func (t *tenant) perSecond() float64 { return float64(t.params.Count) * 1e6 / float64(t.params.Period) }

// may returns how many units the limit admits at most in some microseconds.
func (t *tenant) may(micros int64) float64 {
	return float64(t.params.Capacity) + t.perSecond()*float64(micros)/1e6
}

// overall returns what was admitted until the end, as a part of what the limit
// admits.
func (t *tenant) overall(end int64) float64 { return float64(t.admitted.total()) / t.may(end) }

// worst returns the same of that second which had the most, among those that ended
// after an instant.
func (t *tenant) worst(after int64) float64 {
	most := 0
	for end := after / binTime; end <= int64(len(t.admitted)); end++ {
		most = max(most, t.admitted.between(end*binTime-second, end*binTime))
	}
	return float64(most) / t.may(second)
}

// pace returns what was admitted from one instant to another, as a part of what the
// rate of the limit brings in that time.
func (t *tenant) pace(from, to int64) float64 {
	return float64(t.admitted.between(from, to)) / (t.perSecond() * float64(to-from) / 1e6)
}

// burst returns how many units more than so many times its rate were admitted, in
// that span of time in which it were the most: a token bucket of that rate, which
// admits the same, holds so much.
func (t *tenant) burst(admitted histogram, times float64) float64 {
	level, most := 0.0, 0.0
	for _, n := range admitted {
		level = max(0, level+float64(n)-times*t.perSecond()*binTime/1e6)
		most = max(most, level)
	}
	return most
}

// exact returns what was admitted by the store, and from leases.
func (t *tenant) exact() histogram {
	h := slices.Clone(t.admitted)
	for bin, n := range t.local {
		h[bin] -= n
	}
	return h
}
