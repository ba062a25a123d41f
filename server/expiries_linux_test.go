package server

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestExpiriesInOrder: whatever the order in which they are pushed, the earliest
// comes first.
func TestExpiriesInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var q expiries
		var held []int64
		for _, ms := range rapid.SliceOf(rapid.Int64Range(-1, 50)).Draw(rt, "pushed") {
			if ms >= 0 || len(held) == 0 {
				q.push(expiry{at: time.UnixMilli(ms)})
				held = append(held, ms)
				continue
			}
			earliest := slices.Min(held)
			if got := q.first().at.UnixMilli(); got != earliest {
				rt.Fatalf("first is %d of %v", got, held)
			}
			q.drop()
			held = slices.Delete(held, slices.Index(held, earliest), slices.Index(held, earliest)+1)
		}
		if len(q) != len(held) || (len(q) == 0) != (q.first() == nil) {
			rt.Fatalf("%d left, want %d", len(q), len(held))
		}
	})
}
