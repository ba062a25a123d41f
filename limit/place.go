package limit

import "fmt"

// Place says where the buckets of a limit live.
type Place uint8

// The places of buckets.
const (
	// PlaceShared is the store, exact for all instances together.
	PlaceShared Place = iota
	// PlaceLocal is each instance, with its share of the limit, and no store call.
	PlaceLocal
	// PlaceAutoLocal is the store, and each instance only while the store's shard
	// has more to do than it can.
	PlaceAutoLocal
)

// String returns the name used in limits files.
func (p Place) String() string {
	switch p {
	case PlaceLocal:
		return "local"
	case PlaceAutoLocal:
		return "auto-local"
	default:
		return "shared"
	}
}

// DescribePlace says where the buckets of l live, and how wrong that can be with
// n instances.
func (l *Limit) DescribePlace(n int64) string {
	if l.Store == PlaceShared || l.Action != ActionLimit {
		return l.Store.String()
	}
	share := l.Params.Share(n).Capacity
	text := fmt.Sprintf("%s: each of %d instances admits its share, %d units at once, whatever the others do", l.Store, n, share)
	if l.Store == PlaceAutoLocal {
		return text + ", while the store is saturated: together up to twice the limit"
	}
	if l.Params.Algorithm != AlgorithmTokenBucket {
		return text + ", and earns it again over the window: together up to twice the limit in one"
	}
	if over := share*n - l.Params.Capacity; over > 0 {
		return text + fmt.Sprintf(": together up to %d units beyond the limit", over)
	}
	return text + ": together never more than the limit, in checks of one unit"
}
