package limit

import (
	"fmt"

	"github.com/limitgate/limitgate/limit/bucket"
)

// Placement is where the buckets of a limit live.
type Placement uint8

// The placements of buckets.
const (
	// PlacementShared is the store, exact for all instances together.
	PlacementShared Placement = iota
	// PlacementLocal is each instance, with its share of the limit and without calls to
	// the store.
	PlacementLocal
	// PlacementAutoLocal is the store, and each instance only while the store's shard is
	// saturated.
	PlacementAutoLocal
)

// String returns the name used in limits files.
func (p Placement) String() string {
	switch p {
	case PlacementLocal:
		return "local"
	case PlacementAutoLocal:
		return "auto-local"
	default:
		return "shared"
	}
}

// DescribePlacement describes where the buckets of l live, and the error that this allows
// with n instances.
func (l *Limit) DescribePlacement(n int64) string {
	if l.Store == PlacementShared || l.Action != ActionLimit {
		return l.Store.String()
	}
	share := l.Params.Share(n).Capacity
	text := fmt.Sprintf("%s: each of %d instances admits its share, %d units at once, whatever the others do", l.Store, n, share)
	if l.Store == PlacementAutoLocal {
		return text + ", while the store is saturated: together up to twice the limit"
	}
	if l.Params.Algorithm != bucket.AlgorithmTokenBucket {
		return text + ", and earns it again over the window: together up to twice the limit in one"
	}
	if over := share*n - l.Params.Capacity; over > 0 {
		return text + fmt.Sprintf(": together up to %d units beyond the limit", over)
	}
	return text + ": together never more than the limit, in checks of one unit"
}
