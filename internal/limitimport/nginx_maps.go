package limitimport

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// nginxMap is a map or geo block, with the values of its variable.
type nginxMap struct {
	line    int
	source  string // the variable that a map reads, without $, or "" of a geo block, which reads the address
	entries []mapEntry
}

type mapEntry struct{ key, value string }

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

// value returns the value of an entry, or of that with the key default.
func (m *nginxMap) value(key string) string {
	value := ""
	for _, e := range m.entries {
		if e.key == key {
			return e.value
		}
		if e.key == "default" {
			value = e.value
		}
	}
	return value
}

// mapBlock begins a block of the values of a variable.
func (n *nginx) mapBlock(line int, source, variable string) {
	n.context.values = &nginxMap{line: line, source: source}
	n.maps[strings.TrimPrefix(variable, "$")] = n.context.values
}

// maxExempted bounds the networks of a geo or map block that become limits with action: allow.
const maxExempted = 50

// exempted returns the networks whose addresses have an empty key, and reports whether these are all such requests.
func (n *nginx) exempted(m *nginxMap) (networks []netip.Prefix, all bool) {
	of, value := m, m.value
	if geo := n.maps[m.source]; geo != nil {
		of, value = geo, func(key string) string { return m.value(geo.value(key)) }
	}
	var others []netip.Prefix
	for _, e := range of.entries {
		network, ok := of.network(e.key)
		switch {
		case e.key == "default":
		case value(e.key) != "":
			others = append(others, network)
		case !ok || len(networks) == maxExempted:
			return nil, false
		default:
			networks = append(networks, network)
		}
	}
	within := func(network netip.Prefix) bool {
		return slices.ContainsFunc(others, func(other netip.Prefix) bool { return !other.IsValid() || network.Overlaps(other) })
	}
	return networks, len(networks) > 0 && !slices.ContainsFunc(networks, within)
}

// network returns the network of a key: an address, or of a geo block in CIDR form too.
func (m *nginxMap) network(key string) (network netip.Prefix, ok bool) {
	if addr, err := netip.ParseAddr(key); err == nil && (m.source == "" || m.source == "remote_addr") {
		return netip.PrefixFrom(addr, addr.BitLen()), !addr.Is4In6() && addr.Zone() == ""
	}
	network, err := netip.ParsePrefix(key)
	return network.Masked(), err == nil && m.source == "" && !network.Addr().Is4In6()
}

// addExempted adds limits that admit the addresses whose key is empty, unless they would lift another limit too.
func (n *nginx) addExempted(r *limitRequest) {
	m := r.exempting
	if m == nil {
		return
	}
	networks, all := n.exempted(m)
	if !all || r.limit.shadow {
		n.remark(r.line, "$%s is the address of the client or empty, by the map on line %d; here requests for which it is empty count too", limit.Shorten(r.variable), m.line)
		return
	}
	var allows []imported
	for _, network := range networks {
		allow := r.limit.allow()
		allow.when = append(slices.Clip(allow.when), condition{"ip", strings.TrimSuffix(network.String(), "/"+strconv.Itoa(network.Addr().BitLen()))})
		if other := n.liftedToo(r, &allow); other != nil {
			n.remark(r.line, "$%s is empty for some addresses, by the map on line %d; here they count too, as a limit that admits them would compete with that of line %d", limit.Shorten(r.variable), m.line, other.line)
			return
		}
		allows = append(allows, allow)
	}
	for _, allow := range allows {
		n.draft.add(allow)
	}
}

// liftedToo returns a limit_req whose limit an allow for the one of r would lift, although nginx counts its requests, or
// with which it would tie, or nil.
func (n *nginx) liftedToo(r *limitRequest, allow *imported) *limitRequest {
	for i := range n.requests {
		other := &n.requests[i]
		if !other.imported || other.limit.place() != allow.place() || !other.limit.meets(allow.when) {
			continue
		}
		before := allow.compareRank(&other.limit)
		lifts := before < 0 && r.limit.compareRank(&other.limit) >= 0 && other != r && other.exempting != r.exempting
		if n.compared++; n.compared > maxHidden || lifts || before == 0 {
			return other
		}
	}
	return nil
}
