package limitimport

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// maxExempted bounds the networks of a geo or map block that become limits with action: allow.
const maxExempted = 50

// exempted returns the networks whose addresses have an empty key, and reports whether these are all such requests.
func (n *nginx) exempted(m *nginxMap) (networks []netip.Prefix, all bool) {
	of, value := m, func(own string) string { return own }
	if geo := n.maps[m.source]; geo != nil {
		if m.hasPatterns() {
			return nil, false
		}
		of, value = geo, m.value
	}
	last := map[netip.Prefix]int{} // of entries for one network the last one counts
	for i, e := range of.entries {
		if network, ok := of.network(e.key); ok {
			last[network] = i
		}
	}
	var others []netip.Prefix
	for i, e := range of.entries {
		network, ok := of.network(e.key)
		switch {
		case e.key == "default", ok && last[network] != i:
		case value(e.value) != "":
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

// exemptions returns limits that admit the addresses whose key is empty, and reports whether these are all such requests.
func (n *nginx) exemptions(r *limitRequest) (allows []imported, all bool) {
	networks, all := n.exempted(r.exempting)
	for _, network := range networks {
		allow := r.limit.allow()
		allow.when = append(slices.Clip(allow.when), condition{"ip", strings.TrimSuffix(network.String(), "/"+strconv.Itoa(network.Addr().BitLen()))})
		allows = append(allows, allow)
	}
	return allows, all
}

// maxSeparated bounds the limits that have a group of their own for their exempt addresses: a request may meet each of them
// beside those of other groups.
const maxSeparated = 4

// separateExempting gives limits groups of their own whose exempt addresses another limit of their group would count, or
// would not count any more. What takes their place, or whose place they take, does so still, by limits with action: allow.
func (n *nginx) separateExempting() {
	separate := map[string][]*limitRequest{} // by the limit, which several limit_req may have
	for i := range n.requests {
		if r := &n.requests[i]; r.imported && n.needsGroup(r) {
			key := fmt.Sprint(r.limit)
			separate[key] = append(separate[key], r)
		}
	}
	if len(separate) > maxSeparated {
		return
	}
	for _, same := range separate {
		lifts := n.keepPlaces(same[0], separate)
		for _, r := range same {
			r.lifts = lifts
		}
	}
	for i, key := range slices.Sorted(maps.Keys(separate)) {
		for _, r := range separate[key] {
			r.limit.group = fmt.Sprintf("exempt-%d", i+1)
			for j := range r.lifts {
				if l := &r.lifts[j]; l.group == exemptGroup {
					l.group = r.limit.group
				}
			}
		}
	}
}

// exemptGroup stands for the group that a limit gets for its exempt addresses.
const exemptGroup = "exempt"

// needsGroup reports whether a limit that admits exempt addresses of a limit_req competes with another limit.
func (n *nginx) needsGroup(r *limitRequest) bool {
	if r.exempting == nil || r.limit.shadow {
		return false
	}
	allows, all := n.exemptions(r)
	return all && slices.ContainsFunc(allows, func(allow imported) bool { return n.liftedToo(r, &allow) != nil }) &&
		!slices.ContainsFunc(n.requests, func(o limitRequest) bool {
			return o.imported && o.limit.shadow && o.limit.place() == r.limit.place()
		})
}

// keepPlaces returns limits that lift the limit of r in a group of its own where another one takes its place, and the others
// where that takes theirs.
func (n *nginx) keepPlaces(r *limitRequest, separate map[string][]*limitRequest) (lifts []imported) {
	under := false
	for i := range n.requests {
		o := &n.requests[i]
		if !o.imported || o.limit.equals(&r.limit) || o.limit.place() != r.limit.place() || !o.limit.meets(r.limit.when) {
			continue
		}
		if o.limit.takesPlaceOf(&r.limit) {
			lift := o.limit.allow()
			lift.id, lift.group = r.limit.id+"-"+o.limit.id+"-allow", exemptGroup
			lifts = append(lifts, lift)
		}
		under = under || r.limit.takesPlaceOf(&o.limit) && separate[fmt.Sprint(o.limit)] == nil
	}
	if under {
		lifts = append(lifts, r.limit.allow())
	}
	return lifts
}

// addExempted adds limits that admit the addresses whose key is empty, unless they would lift another limit too.
func (n *nginx) addExempted(r *limitRequest) {
	m := r.exempting
	if m == nil {
		return
	}
	allows, all := n.exemptions(r)
	if !all || r.limit.shadow {
		n.remark(r.line, "$%s is the address of the client or empty, by the map on line %d; here requests for which it is empty count too", limit.Shorten(r.variable), m.line)
		return
	}
	for i := range allows {
		if other := n.liftedToo(r, &allows[i]); other != nil {
			n.remark(r.line, "$%s is empty for some addresses, by the map on line %d; here they count too, as a limit that admits them would compete with that of line %d", limit.Shorten(r.variable), m.line, other.line)
			return
		}
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
