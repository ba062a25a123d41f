package simulation

import (
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/memory"
)

// storeOfCell is the store of a cell's buckets.
type storeOfCell struct {
	*memory.Store
	buffer *limit.Buffer
}

func newStoreOfCell() storeOfCell {
	return storeOfCell{memory.New(memory.Options{Buckets: 100}), &limit.Buffer{}}
}

// takeAll takes all units of a limit, and returns their number.
func (s *storeOfCell) takeAll(set *limit.Set, now int64) (units int64) {
	for cost := int64(1); cost > 0; {
		s.buffer.Reset()
		set.Resolve(&limit.Request{Tenant: "t", Cost: cost}, nil, now, s.buffer)
		s.Take(limit.DecisionTime{Now: now}, s.buffer.Items, s.buffer.Calls)
		if !s.buffer.Items[0].Allowed {
			return units
		}
		units += cost
		cost = s.buffer.Items[0].Remaining
	}
	return units
}
