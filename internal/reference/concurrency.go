package reference

import (
	"maps"
	"math/big"
)

// slots limits what is at work at the same time. Each holder has a slot until it
// releases it, or until its time is up.
type slots struct {
	terms terms
	// held has until when each holder has its slot.
	held map[int64]int64
}

func (b *slots) follows() terms { return b.terms }

// adopt loses no slot that is held. There are no new ones until few enough are.
func (b *slots) adopt(_ int64, t terms) { b.terms = t }

func (b *slots) content(at int64) *big.Rat {
	left := b.terms.capacity
	for holder := range b.held {
		if b.holds(at, holder) {
			left--
		}
	}
	return whole(left)
}

func (b *slots) holds(at, holder int64) bool {
	until, found := b.held[holder]
	return found && at < until
}

func (b *slots) clone() bucket {
	return &slots{b.terms, maps.Clone(b.held)}
}
