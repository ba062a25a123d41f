package cluster

import (
	"errors"
	"fmt"

	"github.com/limitgate/limitgate/limit"
)

// errUnowned is the part of the error for slots without a master that is the same for all of them.
var errUnowned = errors.New("hash slots have no master: give them to one, as redis-cli --cluster fix does")

// unowned returns how many hash slots no master owns. It is 0 while no master is known.
func (t *topology) unowned() (n int) {
	if t.single != nil || len(t.nodes) == 0 {
		return 0
	}
	for _, owner := range t.slots {
		if owner == nil {
			n++
		}
	}
	return n
}

// Unowned returns an error if hash slots of the cluster have no master, while others have one.
func (s *Store) Unowned() error {
	if n := s.top.Load().unowned(); n > 0 {
		return fmt.Errorf("%d of %d %w", n, limit.NumHashSlots, errUnowned)
	}
	return nil
}

// logUnowned logs that slots lost their master in a new topology, or that all have one again.
func (s *Store) logUnowned(before, after *topology) {
	had, has := 0, after.unowned()
	if before != nil {
		had = before.unowned()
	}
	switch {
	case has > 0 && had == 0:
		s.opts.Log.Error("hash slots of the store have no master, using backstop for their tenants", "slots", has, "of", limit.NumHashSlots, "advice", "give them to a master, as redis-cli --cluster fix does")
	case has == 0 && had > 0 && len(after.nodes) > 0:
		s.opts.Log.Info("all hash slots of the store have a master again")
	}
}
