package limit

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"strings"
)

// BlocksOf returns the blocks with the IPv4 addresses from a first to a last one, or nil if they are others. There are at most 62:
// each is the largest one that begins there.
func BlocksOf(first, last netip.Addr) (blocks []netip.Prefix) {
	if !first.Is4() || !last.Is4() {
		return nil
	}
	a, b := first.As4(), last.As4()
	low, high := uint64(binary.BigEndian.Uint32(a[:])), uint64(binary.BigEndian.Uint32(b[:]))
	for low <= high {
		free := min(bits.TrailingZeros64(low|1<<32), bits.Len64(high-low+1)-1) // bits of the addresses in one block
		var addr [4]byte
		binary.BigEndian.PutUint32(addr[:], uint32(low))
		blocks = append(blocks, netip.PrefixFrom(netip.AddrFrom4(addr), 32-free))
		low += 1 << free
	}
	return blocks
}

// maxBlocksNamed bounds the blocks of a range that an error names.
const maxBlocksNamed = 5

// insteadOfRange says what to write in the place of a range of addresses.
func insteadOfRange(first, last netip.Addr) string {
	blocks := BlocksOf(first, last)
	var names []string
	for _, block := range blocks[:min(len(blocks), maxBlocksNamed)] {
		names = append(names, strings.TrimSuffix(block.String(), "/32"))
	}
	switch more := len(blocks) - len(names); {
	case len(blocks) == 0:
		return "write a limit for each block of the range"
	case len(blocks) == 1:
		return "write " + names[0]
	case more > 0:
		return fmt.Sprintf("write a limit for each block of the range: %s and %d more", strings.Join(names, ", "), more)
	}
	return "write a limit for each block of the range: " + strings.Join(names, ", ")
}

// bitsOfMask returns the bits of a netmask such as 255.255.255.0, or -1 for another text.
func bitsOfMask(text string) int {
	mask, err := netip.ParseAddr(text)
	if err != nil || !mask.Is4() {
		return -1
	}
	m := mask.As4()
	n := bits.LeadingZeros32(^binary.BigEndian.Uint32(m[:]))
	if bits.OnesCount32(binary.BigEndian.Uint32(m[:])) != n {
		return -1
	}
	return n
}
