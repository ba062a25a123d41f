package limitimport

import (
	"net/netip"
	"slices"

	"github.com/limitgate/limitgate/limit"
)

// networksOf returns the networks with the addresses from a first to a last one, as a geo block with ranges has them, or nil if they
// are no IPv4 addresses: nginx has ranges of these alone.
func networksOf(first, last string) []netip.Prefix {
	from, errFrom := netip.ParseAddr(first)
	to, errTo := netip.ParseAddr(last)
	if errFrom != nil || errTo != nil {
		return nil
	}
	return limit.BlocksOf(from, to)
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
