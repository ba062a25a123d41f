package memory

import (
	"testing"

	"pgregory.net/rapid"
)

// TestIndexIsAMap compares the index with a map, with few tags so that many collide.
func TestIndexIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x index
		want := map[uint32]uint64{} // slot to hash
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			slot := uint32(rapid.IntRange(0, 60).Draw(t, "slot"))
			if hash, ok := want[slot]; ok {
				x.remove(hash, slot)
				delete(want, slot)
			} else {
				hash := rapid.Uint64Range(0, 40).Draw(t, "tag") << 32
				x.add(hash, slot)
				want[slot] = hash
			}
			if x.used != len(want) {
				t.Fatalf("%d used, want %d", x.used, len(want))
			}
			for slot, hash := range want {
				if !contains(&x, hash, slot) {
					t.Fatalf("slot %d is lost", slot)
				}
			}
		}
		for tag := range uint64(41) {
			found, at := uint32(0), x.home(tag<<32)
			for found != none {
				if found, at = x.next(tag<<32, at); found != none && want[found] != tag<<32 {
					t.Fatalf("slot %d is found under another tag", found)
				}
			}
		}
	})
}

func contains(x *index, hash uint64, slot uint32) bool {
	at := x.home(hash)
	for {
		var found uint32
		if found, at = x.next(hash, at); found == slot || found == none {
			return found == slot
		}
	}
}
