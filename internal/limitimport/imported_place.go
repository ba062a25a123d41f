package limitimport

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// allow returns a limit that admits the requests of l.
func (l *imported) allow() imported {
	return imported{id: l.id + "-allow", action: "allow", by: l.by, group: l.group, when: l.when, missing: l.missing}
}

// place returns the level and the group of a limit: limits of one place compete.
func (l *imported) place() string {
	return l.group + ":" + strings.Join(slices.Sorted(slices.Values(l.by)), ",")
}

// hasPlaceOf reports whether two limits compete.
func (l *imported) hasPlaceOf(other *imported) bool {
	return l.group == other.group && len(l.by) == len(other.by) && !slices.ContainsFunc(l.by, func(by string) bool { return !slices.Contains(other.by, by) })
}

// key names a limit by its place and conditions, before it has its id.
func (l *imported) key() string { return l.place() + fmt.Sprint(l.when) }

// isFinerThan reports whether l counts by all that another limit counts by, and more, both of one plan: it can replace that.
func (l *imported) isFinerThan(other *imported) bool {
	has := func(dim string) bool { return slices.Contains(l.by, dim) }
	return slices.Contains(other.by, "tenant") && len(l.by) > len(other.by) && !slices.ContainsFunc(other.by, func(dim string) bool { return !has(dim) })
}

// compareRank is negative if l is more specific than another limit of its place, as in limits files.
func (l *imported) compareRank(other *imported) int {
	return rankOf(l).compare(rankOf(other))
}

// rank is how specific a limit is among those of its place.
type rank struct{ conditions, exact, length int }

func rankOf(l *imported) rank {
	exact, length := l.specificity()
	return rank{len(l.when), exact, length}
}

// compare is negative if r is that of a more specific limit.
func (r rank) compare(other rank) int {
	return cmp.Or(other.conditions-r.conditions, other.exact-r.exact, other.length-r.length)
}

// takesPlaceOf reports whether l is more specific than another limit of its place.
func (l *imported) takesPlaceOf(other *imported) bool {
	return l.compareRank(other) < 0 && l.hasPlaceOf(other)
}

// tiesWith reports whether two limits of one place are equally specific, and meet some requests both.
func (l *imported) tiesWith(other *imported) bool {
	return l.hasPlaceOf(other) && l.compareRank(other) == 0 && l.meets(other.when)
}

func (l *imported) specificity() (exact, length int) {
	for _, c := range l.when {
		if network, ok := c.network(); ok {
			if length += network.Bits(); network.IsSingleIP() {
				exact++
			}
			continue
		}
		prefix, isPrefix := strings.CutSuffix(c.pattern, "*")
		if length += len(prefix); !isPrefix {
			exact++
		}
	}
	return exact, length
}

// meets reports whether l applies to some requests that meet the conditions of a region.
func (l *imported) meets(region []condition) bool {
	for _, a := range l.when {
		for _, b := range region {
			if a.dimension == b.dimension && !a.includes(b) && !b.includes(a) {
				return false
			}
		}
	}
	return true
}

// covers reports whether l applies to all requests that meet the conditions of a region.
func (l *imported) covers(region []condition) bool {
	for _, a := range l.when {
		if !slices.ContainsFunc(region, func(b condition) bool { return a.dimension == b.dimension && a.includes(b) }) {
			return false
		}
	}
	return true
}

// network returns the network of a condition on the address, and reports whether it is one.
func (c condition) network() (netip.Prefix, bool) {
	if c.dimension != "ip" {
		return netip.Prefix{}, false
	}
	if addr, err := netip.ParseAddr(c.pattern); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), true
	}
	network, err := netip.ParsePrefix(c.pattern)
	return network, err == nil
}

// length returns the bits of a network, or the bytes of another pattern. Of two on one dimension that differ, one that the other
// includes is not shorter.
func (c condition) length() int {
	if network, ok := c.network(); ok {
		return network.Bits()
	}
	return len(c.pattern)
}

// includes reports whether all values of another condition on the same dimension meet c.
func (c condition) includes(other condition) bool {
	network, ok := c.network()
	if within, is := other.network(); ok && is {
		return network.Bits() <= within.Bits() && network.Contains(within.Addr())
	}
	prefix, isPrefix := strings.CutSuffix(c.pattern, "*")
	return c.pattern == other.pattern || isPrefix && strings.HasPrefix(strings.TrimSuffix(other.pattern, "*"), prefix)
}
