package limitimport

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// nginxMap is a map or geo block, with the values of its variable.
type nginxMap struct {
	line     int
	source   string // the variable that a map reads, without $, or "" of a geo block, which reads the address
	entries  []mapEntry
	deleted  map[netip.Prefix]int // networks of a geo block, each with the number of entries in front of its delete
	overlaps func() bool          // whether ranges of a geo block overlap
	// hostnames reports that keys are names of hosts, of which .example.com is one with all in it.
	hostnames bool
}

// mapEntry is an entry, or a network of one that is a range of addresses.
type mapEntry struct {
	key, value string
	ofRange    bool
}

// add adds an entry, or deletes that of a network.
func (m *nginxMap) add(key, value string) {
	if network, ok := m.network(value); ok && m.source == "" && key == "delete" {
		if m.deleted == nil {
			m.deleted = map[netip.Prefix]int{}
		}
		m.deleted[network] = len(m.entries)
		return
	}
	first, last, isRange := strings.Cut(key, "-")
	networks := networksOf(first, last)
	if !isRange || m.source != "" || networks == nil {
		m.entries = append(m.entries, mapEntry{key: key, value: value})
		return
	}
	for _, network := range networks {
		m.entries = append(m.entries, mapEntry{network.String(), value, true})
	}
}

// addresses reports whether each value of a map is the address of the client, or empty. There is no map for nil.
func (m *nginxMap) addresses() bool {
	if m == nil {
		return false
	}
	some := false
	for _, e := range m.entries {
		if e.value == "" {
			continue
		}
		name, rest, ok := nginxVariable(e.value)
		if !ok || rest != "" || !isAddress(name) {
			return false
		}
		some = true
	}
	return some
}

// value returns the value of an entry, or of that with the key default. A map does not regard the case of keys.
func (m *nginxMap) value(key string) string {
	value := ""
	for _, e := range m.entries {
		if strings.EqualFold(e.key, key) {
			return e.value
		}
		if e.key == "default" {
			value = e.value
		}
	}
	return value
}

// has reports whether a map has an entry for a key.
func (m *nginxMap) has(key string) bool {
	return slices.ContainsFunc(m.entries, func(e mapEntry) bool { return e.key == key })
}

// hasPatterns reports whether a map has regular expressions, or names of hosts that match others.
func (m *nginxMap) hasPatterns() bool {
	return m.hostnames || slices.ContainsFunc(m.entries, func(e mapEntry) bool { return strings.HasPrefix(e.key, "~") || strings.Contains(e.key, "*") })
}

// effective returns the entries that count: of those for one network the last one, unless it is deleted.
func (m *nginxMap) effective() (entries []mapEntry) {
	last := map[netip.Prefix]int{}
	for i, e := range m.entries {
		if network, ok := m.network(e.key); ok {
			last[network] = i
		}
	}
	for i, e := range m.entries {
		if network, ok := m.network(e.key); !ok || last[network] == i && m.deleted[network] <= i {
			entries = append(entries, e)
		}
	}
	return entries
}

// hasVariables reports whether a value of a map has a variable.
func (m *nginxMap) hasVariables() bool {
	return slices.ContainsFunc(m.entries, func(e mapEntry) bool { return strings.Contains(e.value, "$") })
}

// mapBlock begins a block of the values of a variable.
func (n *nginx) mapBlock(line int, source, variable string) {
	m := &nginxMap{line: line, source: source}
	m.overlaps = sync.OnceValue(m.hasOverlappingRanges) // each limit_req asks
	n.context.values = m
	n.maps[strings.TrimPrefix(variable, "$")] = n.context.values
}

// network returns the network of a key: an address, or of a geo block in CIDR form too.
func (m *nginxMap) network(key string) (network netip.Prefix, ok bool) {
	if addr, err := netip.ParseAddr(key); err == nil && (m.source == "" || m.source == "remote_addr" && addr.String() == key) {
		return netip.PrefixFrom(addr, addr.BitLen()), !addr.Is4In6() && addr.Zone() == ""
	}
	network, err := netip.ParsePrefix(key)
	return network.Masked(), err == nil && m.source == "" && !network.Addr().Is4In6()
}
