package limitimport

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// TestNetworksOf: the networks of a range are its addresses, in order and without a gap.
func TestNetworksOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Uint32().Draw(t, "low")
		high := rapid.OneOf(rapid.Uint32Range(low, low|0xff), rapid.Uint32Min(low), rapid.Just(^uint32(0))).Draw(t, "high")
		networks := networksOf(addrOf(low).String(), addrOf(high).String())
		if len(networks) > 62 {
			t.Fatalf("%d networks", len(networks))
		}
		next := uint64(low)
		for _, n := range networks {
			if n.Masked() != n || n.Addr() != addrOf(uint32(next)) {
				t.Fatalf("%s begins at %s in %v", n, addrOf(uint32(next)), networks)
			}
			next += 1 << (32 - n.Bits())
		}
		if next != uint64(high)+1 {
			t.Fatalf("%v ends before %s", networks, addrOf(high))
		}
	})
	for _, row := range [][2]string{{"10.0.0.9", "10.0.0.8"}, {"10.0.0.1", "x"}, {"::1", "::2"}, {"10.0.0.1", ""}} {
		if networks := networksOf(row[0], row[1]); len(networks) > 0 {
			t.Errorf("%s are %v", row, networks)
		}
	}
}

func addrOf(number uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], number)
	return netip.AddrFrom4(b)
}
