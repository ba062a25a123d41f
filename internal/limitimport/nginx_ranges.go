package limitimport

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"
	"strings"
)

// networkOf returns the network with the addresses from a first to a last one, as a geo block with ranges has them, and reports
// whether they are one.
func networkOf(first, last string) (network netip.Prefix, ok bool) {
	from, errFrom := netip.ParseAddr(first)
	to, errTo := netip.ParseAddr(last)
	if errFrom != nil || errTo != nil || !from.Is4() || !to.Is4() { // nginx has ranges of IPv4 alone
		return netip.Prefix{}, false
	}
	a, b := from.As4(), to.As4()
	low, high := binary.BigEndian.Uint32(a[:]), binary.BigEndian.Uint32(b[:])
	if size := high - low; low > high || size&(size+1) != 0 || low&size != 0 {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(from, bits.LeadingZeros32(high-low)), true
}

// hasOverlappingRanges reports whether ranges of a geo block overlap: to nginx the later one counts, and not the smaller one.
func (m *nginxMap) hasOverlappingRanges() bool {
	var all []netip.Prefix
	for _, e := range m.entries {
		if network, ok := m.network(e.key); ok && strings.Contains(e.key, "-") {
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
