package simulation

import (
	"slices"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// kind is a tenant's load in relation to its limit.
type kind uint8

const (
	tight  kind = iota // twice the limit
	wide               // a part of the limit
	leased             // twice the limit, with a lease
)

// tenant is one tenant of the fleet, with the results of its requests.
type tenant struct {
	name   string
	kind   kind
	shard  int
	rate   float64 // requests a second
	params bucket.Params
	// admitted are the units that were admitted, and local those of them that backstops
	// admitted.
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

// overall returns the units admitted until the end, as a multiple of those that the limit
// admits.
func (t *tenant) overall(end int64) float64 { return float64(t.admitted.total()) / t.may(end) }

// worst returns the same of the second with the most, among those that ended after an
// instant.
func (t *tenant) worst(after int64) float64 {
	most := 0
	for end := after / binTime; end <= int64(len(t.admitted)); end++ {
		most = max(most, t.admitted.between(end*binTime-second, end*binTime))
	}
	return float64(most) / t.may(second)
}

// pace returns the units admitted from one instant to another, as a multiple of the
// refill of the limit in that time.
func (t *tenant) pace(from, to int64) float64 {
	return float64(t.admitted.between(from, to)) / (t.perSecond() * float64(to-from) / 1e6)
}

// burst returns the maximum, over all spans of time, of the units admitted beyond times
// its rate: a token bucket of that rate which admits the same has this capacity.
func (t *tenant) burst(admitted histogram, times float64) float64 {
	level, most := 0.0, 0.0
	for _, n := range admitted {
		level = max(0, level+float64(n)-times*t.perSecond()*binTime/1e6)
		most = max(most, level)
	}
	return most
}

// exact returns the units admitted by the store, and from leases.
func (t *tenant) exact() histogram {
	h := slices.Clone(t.admitted)
	for bin, n := range t.local {
		h[bin] -= n
	}
	return h
}
