package memory

import (
	"hash/maphash"
	"sync"

	"github.com/limitgate/limitgate/limit/bucket"
)

// A shard keeps its buckets in slots, and finds them through an index of name hashes.
// Chunks of slots are never moved, and free slots are used again, so that the bound on
// buckets bounds the memory.

const (
	// none stands for no slot.
	none = ^uint32(0)
	// chunkSize is how many slots are allocated at a time.
	chunkSize = 256
	// sweepStep is how many slots an insertion checks for expired buckets when there is
	// no room. It bounds the work of one insertion, not the expired buckets that are
	// found: the next insertion continues where this one stopped.
	sweepStep = 64
	// tidyStep is how many slots it checks while there is room, so that a store far below
	// its bound does not grow up to it.
	tidyStep = 4
	// never is an instant that no clock reaches.
	never = int64(1) << 62
)

// slot holds one bucket. It has no pointers, so that the garbage collector skips a
// million of them. It includes the name, so that finding a bucket touches no other
// memory: 96 bytes, one and a half cache lines.
type slot struct {
	state     bucket.State
	next      uint32 // the next free slot
	algorithm bucket.Algorithm
	nameLen   uint8 // 0 for a free slot, longName for a name in shard.long
	name      [inlineName]byte
}

const (
	// inlineName is the length of the longest name that fits into a slot.
	inlineName = 42
	longName   = 255
)

type shard struct {
	mu    sync.Mutex // guards the fields below
	index index
	// chunks hold the slots: slot i is chunks[i/chunkSize][i%chunkSize].
	chunks    [][]slot
	long      map[uint32]string // names that do not fit into their slots
	units     map[string]*unitsBucket
	used      uint32  // slots that were ever used
	budget    *budget // of the whole store
	last      int64   // the latest time of a decision
	free      uint32  // first free slot
	hand      uint32  // where the next sweep continues
	nextDeath int64   // no bucket expires earlier; updated after a whole round
	round     int64   // the earliest expiry seen in this round of the sweep
	seed      maphash.Seed
	answers   replayCache // to calls that may be replayed
	holds     replayCache // of calls that may be settled
	pending   []pending   // scratch space of the call being decided
	_         [64]byte    // keeps neighbouring locks off one cache line
}

func (sh *shard) init(seed maphash.Seed, b *budget) {
	sh.seed, sh.long, sh.units = seed, map[uint32]string{}, map[string]*unitsBucket{}
	sh.budget, sh.free, sh.round = b, none, never
}

func (sh *shard) slot(i uint32) *slot { return &sh.chunks[i/chunkSize][i%chunkSize] }

// find returns the slot of a bucket, or none.
func (sh *shard) find(hash uint64, name []byte) uint32 {
	at := sh.index.home(hash)
	for {
		var i uint32
		if i, at = sh.index.next(hash, at); i == none || sh.named(i, name) {
			return i
		}
	}
}

// name returns the name of the bucket in a slot, empty for a free one.
func (sh *shard) name(i uint32) string {
	s := sh.slot(i)
	if s.nameLen == longName {
		return sh.long[i]
	}
	return string(s.name[:s.nameLen])
}

// named reports whether the bucket in a slot has the name.
func (sh *shard) named(i uint32, name []byte) bool {
	s := sh.slot(i)
	if s.nameLen == longName {
		return sh.long[i] == string(name)
	}
	return string(s.name[:s.nameLen]) == string(name)
}

// update stores the state of a bucket that has a slot. Earlier reports that the bucket
// may expire earlier than before, which taking units cannot cause.
func (sh *shard) update(i uint32, state *bucket.State, earlier bool) {
	s := sh.slot(i)
	s.state = *state
	if earlier {
		sh.dies(bucket.Expires(s.algorithm, state))
	}
}

// insert gives a bucket a slot. The caller has checked that there is room.
func (sh *shard) insert(hash uint64, name []byte, a bucket.Algorithm, state *bucket.State) {
	i := sh.takeSlot()
	s := sh.slot(i)
	*s = slot{state: *state, algorithm: a, nameLen: longName}
	if len(name) <= inlineName {
		s.nameLen = uint8(copy(s.name[:], name))
	} else {
		sh.long[i] = string(name)
	}
	sh.index.add(hash, i)
	sh.budget.live.Add(1)
	sh.dies(bucket.Expires(a, state))
}

// takeSlot returns an unused slot.
func (sh *shard) takeSlot() uint32 {
	if i := sh.free; i != none {
		sh.free = sh.slot(i).next
		return i
	}
	if int(sh.used) == len(sh.chunks)*chunkSize {
		sh.chunks = append(sh.chunks, make([]slot, chunkSize))
	}
	sh.used++
	return sh.used - 1
}

// makeRoom deletes some expired buckets, for n new ones, unless there are free slots for
// them: an expired bucket that stays may be used again, and then needs no insertion. It
// reports whether it deleted any.
func (sh *shard) makeRoom(n int, now int64) bool {
	step := sweepStep
	if n <= sh.budget.left() {
		if sh.free != none {
			return false
		}
		step = tidyStep
	}
	freed := sh.sweepUnits(step, now)
	if now < sh.nextDeath {
		return freed
	}
	return sh.sweep(step, now) || freed
}

// sweep frees the expired buckets among the next slots, and reports whether there were
// any.
func (sh *shard) sweep(steps int, now int64) (freed bool) {
	for range min(steps, int(sh.used)) {
		if s := sh.slot(sh.hand); s.nameLen > 0 {
			if at := bucket.Expires(s.algorithm, &s.state); at <= now {
				sh.remove(sh.hand)
				freed = true
			} else {
				sh.round = min(sh.round, at)
			}
		}
		if sh.hand++; sh.hand >= sh.used {
			sh.hand, sh.nextDeath, sh.round = 0, sh.round, never
		}
	}
	return freed
}

// dies records that a bucket expires at an instant.
func (sh *shard) dies(at int64) {
	sh.nextDeath = min(sh.nextDeath, at)
	sh.round = min(sh.round, at)
}

// remove frees the slot of a bucket.
func (sh *shard) remove(i uint32) {
	s := sh.slot(i)
	name := s.name[:min(s.nameLen, inlineName)]
	if s.nameLen == longName {
		name = []byte(sh.long[i])
		delete(sh.long, i)
	}
	_, hash := hashName(sh.seed, name)
	sh.index.remove(hash, i)
	*s = slot{next: sh.free}
	sh.free = i
	sh.budget.live.Add(-1)
}
