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

// exempted returns conditions on the requests whose key is empty, or the reason why it cannot. If nested it returns conditions
// too on those of them that have a key all the same, and otherwise leaves out networks that have others in them.
func (n *nginx) exempted(m *nginxMap, variable string, nested bool) (exempt, counted []condition, why string) {
	if m.source == "request_method" {
		exempt, why = m.exemptMethods()
		return exempt, nil, why
	}
	of, value := n.addresses(m)
	switch {
	case n.isByVariable(m):
		return nil, nil, fmt.Sprintf("it is empty by $%s, and not by the address; to leave them out, write by: [%s] in place of [ip] and missing: pass, %[2]s: {hash: true} under dimensions, and services send DIM %[2]s with what nginx has in $%s", limit.Shorten(of.source), word(variable), limit.Shorten(variable))
	case of != m && m.hasPatterns():
		return nil, nil, "its map has regular expressions, or names of hosts that match others"
	case of != m && of.hasVariables():
		return nil, nil, fmt.Sprintf("the block on line %d has variables as values", of.line)
	}
	networks, inside, why := of.exemptNetworks(value, nested)
	return onAddresses(networks), onAddresses(inside), why
}

// isByVariable reports whether a key is empty by another variable than the address and the method of a request.
func (n *nginx) isByVariable(m *nginxMap) bool {
	of, _ := n.addresses(m)
	return m.source != "request_method" && of.source != "" && of.source != "remote_addr"
}

// onAddresses returns conditions on the address, one for each network.
func onAddresses(networks []netip.Prefix) (on []condition) {
	for _, network := range networks {
		on = append(on, condition{"ip", strings.TrimSuffix(network.String(), "/"+strconv.Itoa(network.Addr().BitLen()))})
	}
	return on
}

// partly says which network counts although the key is empty for it, as another one in it counts, or returns "".
func (n *nginx) partly(m *nginxMap) string {
	of, value := n.addresses(m)
	return of.partly(value)
}

// addresses returns the map whose keys are the addresses for a key, and the key for each of its values: m itself, or the map
// that m reads.
func (n *nginx) addresses(m *nginxMap) (of *nginxMap, value func(string) string) {
	if outer := n.maps[m.source]; outer != nil {
		return outer, m.value
	}
	return m, func(own string) string { return own }
}

// exemptNetworks returns the networks of a map for which value returns nothing, or the reason why it cannot. If nested it
// returns those inside of them for which it does not; otherwise it leaves out networks that have others in them.
func (m *nginxMap) exemptNetworks(value func(string) string, nested bool) (networks, inside []netip.Prefix, why string) {
	if m.overlaps() {
		return nil, nil, fmt.Sprintf("ranges in the block on line %d overlap", m.line)
	}
	var others []netip.Prefix
	for _, e := range m.effective() {
		network, ok := m.network(e.key)
		switch {
		case e.key == "default":
		case e.key == "include":
			return nil, nil, fmt.Sprintf("the block on line %d includes %s, which is not read: import what nginx -T prints, which has all files", m.line, limit.Shorten(e.value))
		case !ok:
			return nil, nil, fmt.Sprintf("%s in the block on line %d is no address or network", limit.Shorten(e.key), m.line)
		case value(e.value) != "":
			others = append(others, network)
		case len(networks) == maxExempted:
			return nil, nil, fmt.Sprintf("there are more than %d networks", maxExempted)
		default:
			networks = append(networks, network)
		}
	}
	for _, other := range others {
		if slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Bits() < other.Bits() && n.Overlaps(other) }) {
			inside = append(inside, other)
		}
	}
	switch {
	case nested && len(inside) > maxExempted:
		return nil, nil, fmt.Sprintf("there are more than %d networks in these", maxExempted)
	case nested:
		return networks, inside, ""
	}
	counted := func(network netip.Prefix) bool { return slices.ContainsFunc(others, network.Overlaps) }
	if alone := slices.DeleteFunc(slices.Clone(networks), counted); len(alone) > 0 || len(networks) == 0 {
		return alone, nil, ""
	}
	return nil, nil, m.partly(value)
}

// partly says which network for which value returns nothing has another one in it, or is in one, for which it does not, or
// returns "".
func (m *nginxMap) partly(value func(string) string) string {
	entries := m.effective()
	for _, e := range entries {
		network, ok := m.network(e.key)
		if !ok || value(e.value) != "" {
			continue
		}
		for _, o := range entries {
			if other, ok := m.network(o.key); ok && value(o.value) != "" && network.Overlaps(other) {
				return fmt.Sprintf("it is empty for %s, and not for %s", network, other)
			}
		}
	}
	return ""
}

// exemptMethods returns conditions on the methods for which a map has nothing, or the reason why it cannot.
func (m *nginxMap) exemptMethods() (exempt []condition, why string) {
	for _, e := range m.entries {
		switch method := strings.ToUpper(e.key); {
		case e.key == "default":
		case word(e.key) != e.key:
			return nil, fmt.Sprintf("%s in the map on line %d is no method", limit.Shorten(e.key), m.line)
		case e.value == "" && !slices.Contains(exempt, condition{"op", method + " *"}):
			exempt = append(exempt, condition{"op", method + " *"})
		}
	}
	return exempt, ""
}

// isAlone reports whether no other limit of its place has requests of a limit_req.
func (n *nginx) isAlone(r *limitRequest) bool {
	return !slices.ContainsFunc(n.requests, func(o limitRequest) bool {
		n.compared++
		return o.imported && o.limit.hasPlaceOf(&r.limit) && !o.limit.equals(&r.limit) && o.limit.meets(r.limit.when)
	})
}

// exemptions returns limits that admit the requests whose key is empty, and those that count some of them all the same, or the
// reason why there are none. If not nested it leaves out networks that have others in them.
func (n *nginx) exemptions(r *limitRequest, nested bool) (allows []imported, why string) {
	exempt, counted, why := n.exempted(r.exempting, r.variable, nested)
	if line, of := n.countedInside(r); why == "" && len(exempt) > 0 && line > 0 {
		return nil, fmt.Sprintf("a limit that admits them would lift that of line %d too, in the location on line %d", of, line)
	}
	for _, on := range exempt {
		allow := r.limit.allow()
		allow.when = append(slices.Clip(allow.when), on)
		allows = append(allows, allow)
	}
	for _, on := range counted {
		own := r.limit
		own.id, own.when = own.id+"-"+on.pattern, append(slices.Clip(own.when), on)
		allows = append(allows, own)
	}
	return allows, why
}

// countedInside returns the line of a location for whose requests, or some of them, nginx counts another limit_req alone, and the
// limit of r takes its place here; of is the line of that limit_req. It returns 0 if there is none.
func (n *nginx) countedInside(r *limitRequest) (line, of int) {
	for i := range n.requests {
		o := &n.requests[i]
		if !o.imported || o.context == r.context || o.exempting == r.exempting || !r.limit.takesPlaceOf(&o.limit) {
			continue // of one map they have the same exempt requests
		}
		for _, c := range o.counts {
			n.compared++
			matches := r.limit.covers(n.region(c)) || c.location.isRegexp() && c.server == r.server && c.location.mayMatch(r.context.location.path)
			if matches && !slices.Contains(r.counts, c) {
				return c.line, o.line
			}
		}
	}
	return 0, 0
}

// maxSeparated bounds the limits that have a group of their own for their exempt addresses: a request may meet each of them
// beside those of other groups.
const maxSeparated = 4

// separateExempting gives limits groups of their own whose exempt addresses another limit of their group would count, or
// would not count any more. What takes their place, or whose place they take, does so still, by limits with action: allow.
func (n *nginx) separateExempting() {
	n.nestExempting()
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
		lifts, nested := n.keepPlaces(same[0], separate, true), true
		if len(lifts) > maxKept {
			lifts, nested = n.keepPlaces(same[0], separate, false), false
		}
		for _, r := range same {
			r.lifts, r.nested = lifts, nested
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

// maxKept bounds the limits by which others keep their places beside one in a group of its own.
const maxKept = 500

// exemptGroup stands for the group that a limit gets for its exempt addresses.
const exemptGroup = "exempt"

// needsGroup reports whether a limit that admits exempt addresses of a limit_req competes with another limit.
func (n *nginx) needsGroup(r *limitRequest) bool {
	if r.exempting == nil || r.limit.shadow {
		return false
	}
	allows, _ := n.exemptions(r, true)
	return slices.ContainsFunc(allows, func(allow imported) bool { return n.liftedToo(r, &allow) != nil }) && n.watchedBeside(r) == nil
}

// watchedBeside returns a limit_req in dry run that meets requests of another one, and whose limit is of its place, or nil: the
// limit that admits its requests would not go with another group.
func (n *nginx) watchedBeside(r *limitRequest) *limitRequest {
	i := slices.IndexFunc(n.requests, func(o limitRequest) bool {
		return o.imported && o.limit.shadow && o.limit.hasPlaceOf(&r.limit) && o.limit.meets(r.limit.when)
	})
	if i < 0 {
		return nil
	}
	return &n.requests[i]
}

// liftID returns the id of the limit by which another limit_req keeps the place of that of r.
func liftID(r, other *limitRequest) string { return r.limit.id + "-" + other.limit.id + "-allow" }

// keepPlaces returns limits that lift the limit of r in a group of its own where another one takes its place, and the others
// where that takes theirs. If nested they are for networks too that have limits of r inside of exempt ones.
func (n *nginx) keepPlaces(r *limitRequest, separate map[string][]*limitRequest, nested bool) (lifts []imported) {
	under := false
	_, counted, _ := n.exempted(r.exempting, r.variable, nested)
	for i := range n.requests {
		o := &n.requests[i]
		if !o.imported || o.limit.equals(&r.limit) || !o.limit.hasPlaceOf(&r.limit) || !o.limit.meets(r.limit.when) {
			continue
		}
		if o.limit.takesPlaceOf(&r.limit) {
			lift := o.limit.allow()
			lift.id, lift.group = liftID(r, o), exemptGroup
			lifts = append(lifts, lift)
			for _, on := range counted { // a limit of r has them
				inside := lift
				inside.when = append(slices.Clip(lift.when), on)
				lifts = append(lifts, inside)
			}
		}
		under = under || r.limit.takesPlaceOf(&o.limit) && separate[fmt.Sprint(o.limit)] == nil
	}
	if under {
		allow := r.limit.allow()
		lifts = append(lifts, allow)
		for _, inside := range n.inside(&allow) {
			if !n.liftsOther(r, &allow, &inside) {
				lifts = append(lifts, inside)
			}
		}
	}
	return lifts
}

// addExempted adds limits that admit the addresses whose key is empty, unless they would lift another limit too.
func (n *nginx) addExempted(r *limitRequest) {
	m := r.exempting
	if m == nil {
		return
	}
	allows, why := n.exemptions(r, r.nested)
	if r.limit.shadow {
		return // remarkWatched
	}
	if why != "" && n.isByVariable(m) {
		return // remarkByVariable
	}
	if why != "" {
		n.remark(r.line, emptyText+"%s", limit.Shorten(r.variable), m.line, why)
		return
	}
	for i := range allows {
		other := n.liftedToo(r, &allows[i])
		if other == nil {
			continue
		}
		beside := ""
		if watched := n.watchedBeside(r); watched != nil {
			beside = fmt.Sprintf(", and the limit_req on line %d is in dry run: without limit_req_dry_run the import leaves them out, and mode: shadow belongs into its limit then", watched.line)
		}
		n.remark(r.line, "$%s is empty for some requests, by the map on line %d; here they count too, as a limit that admits them would compete with that of line %d%s", limit.Shorten(r.variable), m.line, other.line, beside)
		return
	}
	if m.source == "request_method" {
		r.remarkOnce("$%s is empty for some methods, by the map on line %d: limits that admit them are of ops that begin with one, such as \"GET /login\"", limit.Shorten(r.variable), m.line)
	}
	if partly := n.partly(m); partly != "" && !r.nested {
		n.remark(r.line, "$%s is empty for some requests, by the map on line %d; here those of a network that has others in it count too: %s", limit.Shorten(r.variable), m.line, partly)
	}
	for _, allow := range allows {
		n.draft.add(allow)
	}
}

// remarkWatched remarks on limits in shadow mode that watch requests for which their key is empty, as no limit admits these.
func (n *nginx) remarkWatched() {
	for i := range n.requests {
		r := &n.requests[i]
		if !r.imported || r.exempting == nil || !r.limit.shadow {
			continue
		}
		exempt, _, why := n.exempted(r.exempting, r.variable, r.nested)
		watched := func(on condition) bool { return n.isWatched(r, append(slices.Clip(r.limit.when), on)) }
		if why != "" || slices.ContainsFunc(exempt, watched) {
			n.remark(r.line, "$%s is the address of the client or empty, by the map on line %d; here the limit, in shadow mode, watches requests too for which it is empty, and denies none", limit.Shorten(r.variable), r.exempting.line)
		}
	}
}

// isWatched reports whether no other limit of the file takes the place of that of a limit_req for all requests of a region.
func (n *nginx) isWatched(r *limitRequest, region []condition) bool {
	return !slices.ContainsFunc(n.shared, func(o imported) bool {
		n.compared++
		return n.compared <= maxHidden && o.takesPlaceOf(&r.limit) && o.covers(region)
	})
}

// liftedToo returns a limit_req whose limit an allow for the one of r would lift, although nginx counts its requests, or
// with which it would tie, or nil.
func (n *nginx) liftedToo(r *limitRequest, allow *imported) *limitRequest {
	for i := range n.requests {
		other := &n.requests[i]
		if !other.imported || other.limit.shadow || !other.limit.hasPlaceOf(allow) || !other.limit.meets(allow.when) {
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
