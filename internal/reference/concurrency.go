package reference

import (
	"maps"
	"math/big"
)

// slots limits the number of concurrent holders. Each holder has a slot until it releases
// it, or until its time is up.
type slots struct {
	terms terms
	// held maps each holder to the end of its time.
	held map[int64]int64
}

func (b *slots) follows() terms { return b.terms }

// adopt keeps all held slots. No slot is granted until few enough are held.
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
