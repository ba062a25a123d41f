package limitimport

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"
)

// networksOf returns the networks with the addresses from a first to a last one, as a geo block with ranges has them, or nil if they
// are no addresses. There are at most 62: each is the largest one that begins there.
func networksOf(first, last string) (networks []netip.Prefix) {
	from, errFrom := netip.ParseAddr(first)
	to, errTo := netip.ParseAddr(last)
	if errFrom != nil || errTo != nil || !from.Is4() || !to.Is4() { // nginx has ranges of IPv4 alone
		return nil
	}
	a, b := from.As4(), to.As4()
	low, high := uint64(binary.BigEndian.Uint32(a[:])), uint64(binary.BigEndian.Uint32(b[:]))
	for low <= high {
		free := min(bits.TrailingZeros64(low|1<<32), bits.Len64(high-low+1)-1) // bits of the addresses in one network
		var addr [4]byte
		binary.BigEndian.PutUint32(addr[:], uint32(low))
		networks = append(networks, netip.PrefixFrom(netip.AddrFrom4(addr), 32-free))
		low += 1 << free
	}
	return networks
}

// hasOverlappingRanges reports whether ranges of a geo block overlap: to nginx the later one counts, and not the smaller one.
func (m *nginxMap) hasOverlappingRanges() bool {
	var all []netip.Prefix
	for _, e := range m.entries {
		if network, ok := m.network(e.key); ok && e.ofRange {
			all = append(all, network)
		}
	}
	slices.SortFunc(all, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	for i := 1; i < len(all); i++ {
		if all[i-1].Overlaps(all[i]) {
			return true
		}
	}
	return false
}
