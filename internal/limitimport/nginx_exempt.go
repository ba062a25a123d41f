package limitimport

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// maxExempted bounds the networks of a geo or map block that become limits with action: allow.
const maxExempted = 200

// maxNamedPatterns bounds the regular expressions that a remark names.
const maxNamedPatterns = 3

// exempted returns the requests for which the key of a map is empty, and those of them for which it is not, and the reason why these
// are not all.
func (n *nginx) exempted(m *nginxMap) (exempt []exemption, why string) {
	if m.source == "request_method" {
		return m.exemptMethods()
	}
	of, value := n.addresses(m)
	switch {
	case n.isByVariable(m):
		return nil, fmt.Sprintf("it is empty by $%s, and not by the address", limit.Shorten(of.source))
	case of != m && m.hasPatterns():
		return nil, "its map has regular expressions, or names of hosts that match others"
	case of != m && of.hasVariables():
		return nil, fmt.Sprintf("the block on line %d has variables as values", of.line)
	}
	return of.exemptNetworks(value)
}

// isByVariable reports whether a key is empty by another variable than the address and the method of a request.
func (n *nginx) isByVariable(m *nginxMap) bool {
	of, _ := n.addresses(m)
	return m.source != "request_method" && of.source != "" && of.source != "remote_addr"
}

// onAddress returns the condition on the addresses of a network.
func onAddress(network netip.Prefix) condition {
	return condition{"ip", strings.TrimSuffix(network.String(), "/"+strconv.Itoa(network.Addr().BitLen()))}
}

// addresses returns the map whose keys are the addresses for a key, and the key for each of its values: m itself, or the map
// that m reads.
func (n *nginx) addresses(m *nginxMap) (of *nginxMap, value func(string) string) {
	if outer := n.maps[m.source]; outer != nil {
		return outer, m.value
	}
	return m, func(own string) string { return own }
}

// exemptNetworks returns the networks of a map for which value returns nothing, and those inside of them for which it does not, and
// the reason why these are not all.
func (m *nginxMap) exemptNetworks(value func(string) string) (exempt []exemption, why string) {
	if m.overlaps() {
		return nil, fmt.Sprintf("ranges in the block on line %d overlap", m.line)
	}
	var networks, others []netip.Prefix
	var patterns []string
	for _, e := range m.effective() {
		network, ok := m.network(e.key)
		switch {
		case e.key == "default":
		case e.key == "include":
			return nil, fmt.Sprintf("the block on line %d includes %s, which is not read: import what nginx -T prints, which has all files", m.line, limit.Shorten(e.value))
		case m.source != "" && strings.HasPrefix(e.key, "~"):
			if value(e.value) == "" {
				patterns = append(patterns, limit.Shorten(e.key))
			}
		case !ok:
			return nil, fmt.Sprintf("%s in the block on line %d is no address or network", limit.Shorten(e.key), m.line)
		case value(e.value) != "":
			others = append(others, network)
		default:
			networks = append(networks, network)
			exempt = append(exempt, exemption{on: onAddress(network)})
		}
	}
	for _, other := range others {
		if slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Bits() < other.Bits() && n.Overlaps(other) }) {
			exempt = append(exempt, exemption{onAddress(other), true})
		}
	}
	if len(exempt) > maxExempted {
		return nil, fmt.Sprintf("there are more than %d networks", maxExempted)
	}
	if len(patterns) > 0 {
		why = fmt.Sprintf("those of %s in the block on line %d, as no condition has a regular expression: for their networks, write limits like those with action: allow", strings.Join(patterns[:min(len(patterns), maxNamedPatterns)], ", "), m.line)
	}
	return exempt, why
}

// exemptMethods returns the methods for which a map has nothing, or the reason why it cannot.
func (m *nginxMap) exemptMethods() (exempt []exemption, why string) {
	for _, e := range m.entries {
		on := condition{"op", strings.ToUpper(e.key) + " *"}
		switch {
		case e.key == "default":
		case word(e.key) != e.key:
			return nil, fmt.Sprintf("%s in the map on line %d is no method", limit.Shorten(e.key), m.line)
		case e.value == "" && !slices.Contains(exempt, exemption{on: on}):
			exempt = append(exempt, exemption{on: on})
		}
	}
	return exempt, ""
}
