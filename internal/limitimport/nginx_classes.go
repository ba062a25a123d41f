package limitimport

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// zoneLimit is what the limits of a zone have in common.
type zoneLimit struct {
	zone     string
	limit    imported // its conditions are those of all its limits
	first    *limitRequest
	exempt   []exemption
	alone    bool   // its limits have a group of their own
	why      string // the reason why its exempt requests count here, or ""
	excluded bool   // no layout has its exemptions
}

// exemption is requests for which the key of a zone is empty, or some of them for which it is not.
type exemption struct {
	on     condition
	counts bool
}

// counts reports whether a zone counts the requests that meet a condition: its most specific exemption decides.
func (z *zoneLimit) counts(on condition) bool {
	var last *exemption
	for i := range z.exempt {
		if e := &z.exempt[i]; e.on.includes(on) && (last == nil || last.on.includes(e.on)) {
			last = e
		}
	}
	return last == nil || last.counts
}

// zoneLimits returns the zones that count some requests, in the order of their first limit_req.
func (n *nginx) zoneLimits() (zones []*zoneLimit) {
	known := map[string]bool{}
	for i := range n.requests {
		r := &n.requests[i]
		if !r.imported || known[r.zone] {
			continue
		}
		known[r.zone] = true
		z := &zoneLimit{zone: r.zone, limit: r.limit, first: r}
		if m := r.exempting; m != nil {
			z.exempt, z.why = n.exempted(m)
			z.alone = z.why != "" && n.isByVariable(m)
		}
		zones = append(zones, z)
	}
	return zones
}

// maxTried bounds the layouts that zones are tried in.
const maxTried = 8

// layouts distributes zones: two may share a layout if nginx counts no request by both. They do so where that takes no more limits
// than two layouts.
func (n *nginx) layouts(zones []*zoneLimit, sites []*site) (all []*layout, err error) {
	areas := areasOf(sites)
	for _, z := range zones {
		own, err := n.layOut([]*zoneLimit{z}, sites, true)
		if err != nil {
			return nil, err
		}
		at := -1
		for i, l := range all[:min(len(all), maxTried)] {
			if !l.hasPlaceFor(z, areas[z.zone]) {
				continue
			}
			joint, err := n.join(l, own, sites)
			if err != nil {
				return nil, err
			}
			if joint != nil && len(joint.limits) <= len(l.limits)+len(own.limits) {
				at, own = i, joint
				break
			}
		}
		if at < 0 {
			all = append(all, own)
		} else {
			all[at] = own
		}
	}
	n.setGroups(all)
	return all, nil
}

// join returns one layout of two, or nil if there is none. Limits of other hosts do not compete.
func (n *nginx) join(l, other *layout, sites []*site) (*layout, error) {
	zones := slices.Concat(l.zones, other.zones)
	if !l.meets(other, sites) {
		joint := n.newLayout(zones, sites)
		joint.limits, joint.labels = slices.Clone(l.limits), slices.Concat(l.labels, other.labels)
		for _, added := range other.limits {
			if added.lifts >= 0 {
				added.lifts += len(l.limits)
			}
			joint.limits = append(joint.limits, added)
		}
		maps.Copy(joint.counted, l.counted)
		maps.Copy(joint.counted, other.counted)
		return joint, nil
	}
	return n.layOut(zones, sites, false)
}

// meets reports whether two layouts have limits for requests of one site, or for those of all.
func (l *layout) meets(other *layout, sites []*site) bool {
	for i, s := range sites {
		has, hasOther := l.hasZoneOf(s), other.hasZoneOf(s)
		if has && hasOther || i == 0 && (has || hasOther) {
			return true
		}
	}
	return false
}

// areasOf returns the areas whose requests nginx counts by a zone.
func areasOf(sites []*site) map[string][]*area {
	of := map[string][]*area{}
	for _, s := range sites {
		for _, a := range slices.Concat(s.areas, s.labeled) {
			for zone := range a.uses {
				of[zone] = append(of[zone], a)
			}
		}
	}
	return of
}

// hasPlaceFor reports whether a zone counts by the same as those of a layout, and no request that one of them counts. Areas are those
// of the zone.
func (l *layout) hasPlaceFor(z *zoneLimit, areas []*area) bool {
	if slices.ContainsFunc(l.zones, func(o *zoneLimit) bool {
		differ := len(o.exempt) > 0 && len(z.exempt) > 0 && o.exempt[0].on.dimension != z.exempt[0].on.dimension
		return o.alone || z.alone || differ || o.excluded || z.excluded ||
			!o.limit.hasPlaceOf(&z.limit) || o.limit.missing != z.limit.missing || !slices.Equal(o.limit.when, z.limit.when)
	}) {
		return false
	}
	return !slices.ContainsFunc(areas, func(a *area) bool {
		for zone := range a.uses {
			if l.zone(zone) != nil {
				return true
			}
		}
		return false
	})
}

// newLayout returns a layout without limits.
func (n *nginx) newLayout(zones []*zoneLimit, sites []*site) *layout {
	l := &layout{n: n, zones: zones, byZone: map[string]*zoneLimit{}, parts: partsOf(zones), hosts: len(sites) > 1, counted: map[string][]zoneKind{}}
	for _, z := range zones {
		l.byZone[z.zone] = z
	}
	return l
}

// zone returns a zone of a layout, or nil.
func (l *layout) zone(name string) *zoneLimit { return l.byZone[name] }

// maxParts bounds the areas and parts of a layout.
const maxParts = 100_000

// layOut makes the limits of zones. Where a limit would be as specific as another one, conditions on all paths stand beside others.
// Where that does not help, or there are too many exemptions, it excludes them if it may, so that exempt requests count, and otherwise
// returns nil.
func (n *nginx) layOut(zones []*zoneLimit, sites []*site, mayExclude bool) (*layout, error) {
	l := n.newLayout(zones, sites)
	areas := 0
	for _, s := range sites {
		areas += len(s.areas) + len(s.labeled)
	}
	mayTie := len(l.parts) > 0 || l.hosts && len(sites[0].areas)+len(sites[0].labeled) > 1
	for _, l.pads = range []bool{false, true} {
		if areas*len(l.parts) > maxParts {
			break
		}
		if err := l.settleAll(sites); err != nil {
			return nil, err
		}
		if !mayTie || !l.ties() {
			return l, nil
		}
	}
	if !mayExclude {
		return nil, nil
	}
	l.excludeParts("limits that admit them would be too many, or as specific as others")
	return l, l.settleAll(sites)
}

// excludeParts counts the exempt requests of the zones.
func (l *layout) excludeParts(why string) {
	l.parts = nil
	for _, z := range l.zones {
		if len(z.exempt) > 0 {
			z.exempt, z.excluded, z.why = nil, true, why
		}
	}
}

// partsOf returns the exemptions of zones, those behind others that are inside of these.
func partsOf(zones []*zoneLimit) (parts []part) {
	var all []condition
	for _, z := range zones {
		for _, e := range z.exempt {
			if !slices.Contains(all, e.on) {
				all = append(all, e.on)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b condition) int { return a.length() - b.length() })
	for _, on := range all {
		p := part{on: on}
		for i, o := range parts {
			if o.on.includes(on) {
				p.outer = append(p.outer, i)
			}
		}
		parts = append(parts, p)
	}
	return parts
}

// setGroups gives layouts that count by the same groups of their own, but for the first one.
func (n *nginx) setGroups(all []*layout) {
	taken := map[string]bool{}
	for _, l := range all {
		z := l.zones[0]
		group := ""
		if len(z.limit.when) > 0 { // of one method
			group = "method-" + strings.TrimSuffix(z.limit.when[0].pattern, " *")
		}
		own := imported{by: z.limit.by, group: group}
		if z.alone {
			own.group = word(z.zone)
		}
		for number := 1; taken[own.place()]; number++ {
			own.group = cmp.Or(group, word(z.zone))
			if number > 1 {
				own.group = fmt.Sprintf("%s-%d", own.group, number)
			}
		}
		taken[own.place()] = true
		for i := range l.limits {
			l.limits[i].group = own.group
		}
		for i := range l.limits {
			if added := &l.limits[i]; added.lifts >= 0 {
				added.coarser = []string{l.limits[added.lifts].key()}
			}
		}
	}
}

// remarkExcluded remarks on exempt requests: those of methods, and those that count here.
func (n *nginx) remarkExcluded(all []*layout) {
	for _, l := range all {
		for _, z := range l.zones {
			m := z.first.exempting
			if len(z.exempt) > 0 && z.exempt[0].on.dimension == "op" {
				n.remark(z.first.line, "$%s is empty for some methods, by the map on line %d: limits that admit them are of ops that begin with one, such as \"GET /login\"", limit.Shorten(z.first.variable), m.line)
			}
			if z.why == "" {
				continue
			}
			text := fmt.Sprintf("$%s is the address of the client or empty, by the map on line %d; here requests for which it is empty count too: %s", limit.Shorten(z.first.variable), m.line, z.why)
			if z.alone {
				text += n.countBy(l, z)
			}
			n.remark(z.first.line, "%s", text)
		}
	}
}

// countBy says how the limits of a zone count by its variable, which services send then.
func (n *nginx) countBy(l *layout, z *zoneLimit) string {
	dimension := n.dimension(z.first.variable)
	n.hash(dimension)
	n.advised = append(n.advised, condition{dimension, ""})
	what := "in its limit"
	if len(l.limits) > 1 {
		what = "in all limits of group " + l.limits[0].group
	}
	return fmt.Sprintf("; to leave them out, write by: [%s], missing: pass in place of by: [ip] %s, and services send DIM %[1]s with what nginx has in $%[3]s", dimension, what, limit.Shorten(z.first.variable))
}
