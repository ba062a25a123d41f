package memory

// index finds slots by the hash of a bucket's name: an open-addressing table with linear
// probing. Eight bytes for a bucket keep the cells of a hundred thousand buckets in the
// CPU cache, and a lookup reads one place. The index holds no names: its callers compare
// them.
type index struct {
	// cells hold the tag of a hash in the upper half and a slot number plus one in the
	// lower; 0 is an empty cell. Their number is a power of two.
	cells []uint64
	used  int
}

// minCells is the size of the smallest table that is not empty.
const minCells = 16

func tagOf(hash uint64) uint64 { return hash >> 32 }

// next returns the slot in the first cell at or behind cell `at` that has the tag of the
// hash, and the cell at which to continue; none if there is no other.
func (x *index) next(hash uint64, at int) (slot uint32, on int) {
	if len(x.cells) == 0 {
		return none, 0
	}
	mask := len(x.cells) - 1
	for {
		cell := x.cells[at&mask]
		if cell == 0 {
			return none, 0
		}
		at++
		if cell>>32 == tagOf(hash) {
			return uint32(cell) - 1, at
		}
	}
}

// home returns the cell at which the search for a hash begins.
func (x *index) home(hash uint64) int { return int(tagOf(hash)) & (len(x.cells) - 1) }

// add puts a slot into the table.
func (x *index) add(hash uint64, slot uint32) {
	if (x.used+1)*4 > len(x.cells)*3 {
		x.grow()
	}
	x.used++
	x.place(tagOf(hash)<<32 | uint64(slot+1))
}

func (x *index) place(cell uint64) {
	mask := len(x.cells) - 1
	at := int(cell>>32) & mask
	for x.cells[at] != 0 {
		at = (at + 1) & mask
	}
	x.cells[at] = cell
}

func (x *index) grow() {
	old := x.cells
	x.cells = make([]uint64, max(minCells, 2*len(old)))
	for _, cell := range old {
		if cell != 0 {
			x.place(cell)
		}
	}
}

// remove takes a slot out of the table. The cells behind it move up, so that
// no search ends early at the gap.
func (x *index) remove(hash uint64, slot uint32) {
	mask := len(x.cells) - 1
	gap := x.home(hash)
	for x.cells[gap] != tagOf(hash)<<32|uint64(slot+1) {
		gap = (gap + 1) & mask
	}
	for at := gap; ; {
		at = (at + 1) & mask
		cell := x.cells[at]
		if cell == 0 {
			break
		}
		// The cell may fill the gap unless its home lies behind the gap.
		if home := int(cell>>32) & mask; (at-home)&mask >= (at-gap)&mask {
			x.cells[gap] = cell
			gap = at
		}
	}
	x.cells[gap] = 0
	x.used--
}
