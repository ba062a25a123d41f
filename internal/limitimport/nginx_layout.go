package limitimport

import (
	"errors"
	"slices"
	"strings"
)

// layout is the limits of zones that count by the same, of which nginx counts at most one for a request: they compete here, and the
// most specific one that has an area is the one that nginx counts there, or one that allows where it counts none.
type layout struct {
	n       *nginx
	zones   []*zoneLimit
	byZone  map[string]*zoneLimit
	parts   []part
	hosts   bool // there are sites with a host
	pads    bool // conditions on all paths stand where a limit could be as specific as another one
	limits  []laid
	at      map[spot][]int        // the limits of a spot
	labels  []*area               // those that limits have a condition on
	counted map[string][]zoneKind // where the limits of a zone count, but for those of parts
}

// laid is a limit of a layout.
type laid struct {
	imported
	rank   rank
	origin origin
	lifts  int // the limit that it lifts, if it allows, or -1
}

// part is requests that zones of a layout count otherwise, by their address or their method.
type part struct {
	on    condition
	outer []int // the parts that include it, which stand before it; none is noPart
}

// noPart stands for all requests of an area.
const noPart = -1

// spot is the requests that a limit is for.
type spot struct {
	host, pattern, label string
	part                 int
}

// origin is what of nginx a limit counts as. That of an allow has no zone.
type origin struct {
	zone  string
	burst int64
}

// maxSettled bounds the spots that are looked at to find what decides.
const maxSettled = 40_000_000

// maxTies bounds the limits that are compared to find two that are equally specific.
const maxTies = 5_000_000

var errTooLarge = errors.New("there are too many zones, locations and exempt addresses: import the servers one by one")

// settleAll makes the limits for all areas of sites.
func (l *layout) settleAll(sites []*site) error {
	l.at, l.counted = map[spot][]int{}, map[string][]zoneKind{}
	l.limits, l.labels = nil, nil
	hostless := 0 // limits without a host
	for i, s := range sites {
		if i == 1 {
			hostless = len(l.limits)
		}
		if i > 0 && !l.hasZoneOf(s) && hostless == 0 {
			continue // no limit has its requests
		}
		for _, a := range slices.Concat(s.areas, s.labeled) {
			for p := noPart; p < len(l.parts); p++ {
				if err := l.settle(a, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// hasZoneOf reports whether nginx counts requests of a site by a zone.
func (l *layout) hasZoneOf(s *site) bool {
	return slices.ContainsFunc(l.zones, func(z *zoneLimit) bool { return s.zones[z.zone] })
}

// settle adds limits for a part of an area unless those before decide as nginx does.
func (l *layout) settle(a *area, p int) error {
	z, u := l.wanted(a, p)
	denies, right := false, true
	for _, in := range a.paths() {
		if l.n.looked > maxSettled {
			return errTooLarge
		}
		deciding, first := l.deciding(a, in, p)
		denies = denies || deciding >= 0 && l.limits[deciding].action == ""
		right = right && l.isRight(z, u, deciding, first)
	}
	if right {
		return nil
	}
	l.label(a)
	if z == nil || u.dry && denies {
		l.add(a, p, l.allowing(a, p))
	}
	if z != nil {
		own := z.limit
		own.burst, own.shadow = u.burst+1, u.dry
		l.add(a, p, laid{imported: own, origin: origin{z.zone, u.burst}, lifts: -1})
		if p == noPart {
			l.counted[z.zone] = append(l.counted[z.zone], zoneKind{u.request.line, a.host, a.pattern + a.label})
		}
	}
	return nil
}

// wanted returns the zone that nginx counts a part of an area by, and how, or nil.
func (l *layout) wanted(a *area, p int) (*zoneLimit, use) {
	for zone, u := range a.uses { // of those of the layout there is one at most
		if z := l.zone(zone); z != nil && (p == noPart || z.counts(l.parts[p].on)) {
			return z, u
		}
	}
	return nil, use{}
}

// deciding returns the limit that decides a part of an area, without those in shadow mode, and the first one of all, or -1. In is the
// area of its paths.
func (l *layout) deciding(a, in *area, p int) (deciding, first int) {
	deciding, first = -1, -1
	parts := []int{noPart}
	if p != noPart {
		parts = append(slices.Clone(l.parts[p].outer), p, noPart)
	}
	for at := in; at != nil; at = at.outer {
		for _, s := range l.spots(a, at.pattern) {
			l.n.looked += len(parts)
			for _, s.part = range parts {
				for _, i := range l.at[s] {
					if !l.limits[i].shadow && (deciding < 0 || l.limits[i].rank.compare(l.limits[deciding].rank) < 0) {
						deciding = i
					}
					if first < 0 || l.isBefore(i, first) {
						first = i
					}
				}
			}
		}
	}
	return deciding, first
}

// isBefore reports whether a limit is tried before another one.
func (l *layout) isBefore(i, other int) bool {
	rank := l.limits[i].rank.compare(l.limits[other].rank)
	return rank < 0 || rank == 0 && l.limits[i].shadow && !l.limits[other].shadow
}

// spots returns the spots of a pattern that have requests of an area, without their parts.
func (l *layout) spots(a *area, pattern string) []spot {
	out := []spot{{pattern: pattern}}
	if a.host != "" {
		out = append(out, spot{host: a.host, pattern: pattern})
	}
	if a.label != "" {
		for _, s := range slices.Clone(out) {
			s.label = a.label
			out = append(out, s)
		}
	}
	return out
}

// isRight reports whether a limit, and the first one, decide as nginx does.
func (l *layout) isRight(z *zoneLimit, u use, deciding, first int) bool {
	admits := deciding < 0 || l.limits[deciding].action != ""
	switch {
	case z == nil:
		return admits && (first < 0 || !l.limits[first].shadow)
	case u.dry:
		return admits && first >= 0 && l.limits[first].shadow && l.limits[first].origin == origin{z.zone, u.burst}
	}
	return deciding >= 0 && deciding == first && l.limits[deciding].origin == origin{z.zone, u.burst}
}

// allowing returns a limit that allows what another one counts in an area.
func (l *layout) allowing(a *area, p int) laid {
	lifted := -1
	for _, in := range a.paths() {
		decides, first := l.deciding(a, in, p)
		lifted = decides
		if lifted < 0 || l.limits[lifted].action != "" {
			lifted = first
		}
		if lifted >= 0 && l.limits[lifted].action == "" {
			break
		}
	}
	of := l.zone(l.limits[lifted].origin.zone).limit
	return laid{imported: imported{id: of.id, action: "allow", by: of.by, when: of.when, missing: of.missing}, lifts: lifted}
}

// label gives an area of a location that no condition on the path can have its label, once a limit of some layout needs it.
func (l *layout) label(a *area) {
	if a.within == nil {
		return
	}
	if a.label == "" {
		a.label = l.n.labels.unique(labelOf(a.context.location.path))
	}
	if !slices.Contains(l.labels, a) {
		l.labels = append(l.labels, a)
	}
}

// labelOf returns the words of a location.
func labelOf(path string) string {
	return word(strings.Join(strings.FieldsFunc(path, func(r rune) bool { return r > 0x7f || r != '_' && !isWord(byte(r)) }), "-"))
}

// add adds a limit for a part of an area.
func (l *layout) add(a *area, p int, added laid) {
	when := slices.Clone(added.when)
	pattern, all := a.pattern, condition{"path", "/*"}
	if pattern != "" {
		when = append(when, condition{"path", pattern})
		added.id += "-" + strings.Trim(strings.TrimSuffix(pattern, "*"), "/")
	} else if a.label != "" || l.pads && (p != noPart || a.host != "") {
		when = append(when, all)
	}
	switch {
	case a.host != "":
		when = append(when, condition{l.n.serverDimension(), a.host})
		added.id += "-" + a.host
	case a.label != "" && l.hosts: // more specific than limits of hosts
		when = append(when, condition{l.n.serverDimension(), "*"})
	}
	if a.label != "" {
		when = append(when, condition{"location", a.label})
		added.id += "-" + a.label
	}
	if p != noPart {
		when = append(when, l.parts[p].on)
		if added.action == "" {
			added.id += "-" + l.parts[p].on.pattern
		}
	}
	if added.action != "" {
		added.id += "-allow"
	}
	added.when = when
	added.rank = rankOf(&added.imported)
	s := spot{a.host, pattern, a.label, p}
	l.at[s] = append(l.at[s], len(l.limits))
	l.limits = append(l.limits, added)
}

// ties reports whether two limits are equally specific, and have requests that are the same, or whether there are too many to tell. All
// conditions of a limit are those of an area, so that none does without parts, or limits without a host that have a path.
func (l *layout) ties() bool {
	type among struct {
		rank
		host string // anyHost, that of a limit, or "" for all limits
	}
	of, compared := map[among][]*imported{}, 0
	for i := range l.limits {
		added, r := &l.limits[i].imported, l.limits[i].rank
		others := of[among{r, ""}]
		host := added.hostKey()
		if host != anyHost {
			others = slices.Concat(of[among{r, anyHost}], of[among{r, host}])
		}
		if compared += len(others); compared > maxTies || slices.ContainsFunc(others, added.tiesIn) {
			return true
		}
		for _, key := range []among{{r, ""}, {r, host}} {
			of[key] = append(of[key], added)
		}
	}
	return false
}

// tiesIn reports whether an equally specific limit of its layout has requests of l, and it is not the same which of both they meet.
func (l *imported) tiesIn(other *imported) bool {
	return other.shadow == l.shadow && (other.action == "" || l.action == "") && other.meets(l.when)
}
