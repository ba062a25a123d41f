package load

import (
	"math/rand/v2"

	"github.com/limitgate/limitgate/limit"
)

// Keys are the numbers of the keys of a run's requests, drawn in advance and used in a
// cycle.
type Keys []uint32

// seed makes every run request the same keys in the same order.
const seed = 7

// minDraws keeps short rounds of requests from repeating themselves, and draws of many
// keys from missing most of them.
func minDraws(n int) int { return max(1<<18, 4*n) }

// Uniform draws from n keys, all equally likely.
func Uniform(n int) Keys {
	r := rand.New(rand.NewPCG(seed, 1))
	keys := make(Keys, minDraws(n))
	for i := range keys {
		keys[i] = r.Uint32N(uint32(n))
	}
	return keys
}

// Zipf draws from n keys by Zipf's law with exponent s: key 0 is the most popular one.
func Zipf(n int, s float64) Keys {
	z := rand.NewZipf(rand.New(rand.NewPCG(seed, 2)), s, 1, uint64(n-1))
	keys := make(Keys, minDraws(n))
	for i := range keys {
		keys[i] = uint32(z.Uint64())
	}
	return keys
}

// Hot is one key.
func Hot(key uint32) Keys { return Keys{key} }

// Each has every one of n keys once.
func Each(n int) Keys {
	keys := make(Keys, n)
	for i := range keys {
		keys[i] = uint32(i)
	}
	return keys
}

// Route splits keys among nodes, as a cluster client does: word is the name of a key with
// its Hole, and owner returns which of n nodes owns a hash slot. Each node's keys keep
// their order, and thus their distribution.
func (k Keys) Route(word string, owner func(slot uint16) int, n int) []Keys {
	parts := make([]Keys, n)
	known := make(map[uint32]int)
	for _, key := range k {
		node, ok := known[key]
		if !ok {
			node = owner(limit.HashSlot([]byte(Fill(word, key))))
			known[key] = node
		}
		parts[node] = append(parts[node], key)
	}
	return parts
}
