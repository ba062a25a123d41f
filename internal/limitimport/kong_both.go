package limitimport

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// liftThere begins the advice to lift a limit for some requests.
const liftThere = "to lift it there, write "

// maxKongAdvised bounds the plugins that a plugin takes the place of in Kong and that have remarks of their own,
// with the limits to write.
const maxKongAdvised = 12

// remarkBoth remarks on the plugins that Kong leaves out for another one, and that count here too.
func (k *kong) remarkBoth(p *kongPlugin, allows []kongAllow) {
	lefts := map[int][]kongLeft{}
	for _, left := range p.left {
		if !k.outranked(p, left.region) && !k.lifted(left, allows) {
			lefts[left.line] = append(lefts[left.line], left)
		}
	}
	lines := slices.Sorted(maps.Keys(lefts))
	if len(lines) > maxKongAdvised {
		k.remark(p.line, "Kong runs this plugin in place of those on lines %s; here all of them count", namedLines(lines))
		return
	}
	for _, line := range lines {
		k.remark(p.line, "Kong runs this plugin in place of that on line %d; here both count%s", line, k.adviceToLift(p, lefts[line]))
	}
}

// adviceToLift returns the advice to lift limits of a plugin that Kong leaves out for p, why there is none where a limit would be lifted
// too that Kong has there, or "". The import does not write these itself: a request without the dimensions of p would have no limit.
func (k *kong) adviceToLift(p *kongPlugin, lefts []kongLeft) string {
	var allows []imported
	for _, left := range lefts {
		allow := left.l.allow()
		allow.when = left.region
		switch {
		case !allow.takesPlaceOf(left.l):
			return ""
		case k.liftsOther(&allow, p):
			return ", as an allow there would lift limits of other plugins too"
		}
		allows = append(allows, allow)
	}
	places, advised := map[string][]string{}, 0 // the limits to write, by where in the file
	for _, allow := range allows {
		if at, known := k.nameAdvised(&allow, p.line); known {
			advised = at
			continue
		}
		allow.replaces = k.idsOf(k.liftedBy(&allow))
		places[allow.section()] = append(places[allow.section()], allow.line())
	}
	advice, begin := "", ": "+liftThere
	for _, section := range slices.Sorted(maps.Keys(places)) {
		advice += begin + strings.Join(places[section], " and ") + " in " + section
		begin = " and "
	}
	if len(places) == 0 {
		return fmt.Sprintf(": the limit advised on line %d lifts it there too", advised)
	}
	if dims := p.uncounted(lefts[0].region); len(dims) > 0 {
		advice += "; a request there without DIM " + plains(dims) + " has no limit then"
	}
	return advice
}

// liftedBy returns the keys of the limits that an allow lifts for some requests, or none if they are too many.
func (k *kong) liftedBy(allow *imported) (keys []string) {
	for i := range k.read {
		for n := range k.read[i].limits {
			if l := &k.read[i].limits[n]; k.look() && allow.takesPlaceOf(l) && l.meets(allow.when) {
				keys = append(keys, l.key())
			}
		}
	}
	if len(keys) > mostReplaced {
		return nil
	}
	return keys
}

// idsOf returns the ids of the limits of a file with some keys.
func (k *kong) idsOf(keys []string) (ids []string) {
	for _, l := range slices.Concat(k.tenant, k.shared) {
		if l.action == "" && slices.Contains(keys, l.key()) {
			ids = append(ids, l.id)
		}
	}
	return ids
}

// section returns where in a file a limit is written.
func (l *imported) section() string {
	if slices.Contains(l.by, "tenant") {
		return "plan default"
	}
	return "shared"
}

// liftsOther reports whether an allow lifts, or ties with, a limit of a plugin that Kong does not leave out for p.
func (k *kong) liftsOther(allow *imported, p *kongPlugin) bool {
	for i := range k.read {
		for n := range k.read[i].limits {
			l := &k.read[i].limits[n]
			if !k.look() {
				return true
			}
			if l.place() != allow.place() || !l.meets(allow.when) {
				continue
			}
			if order := allow.compareRank(l); order == 0 || order < 0 && k.read[i].rank >= p.rank {
				return true
			}
		}
	}
	return false
}

// uncounted returns the dimensions that requests of a region may lack, which p then has no limit for.
func (p *kongPlugin) uncounted(region []condition) (dims []string) {
	for _, dim := range p.limits[0].by {
		if dim != "tenant" && dim != "ip" && !slices.ContainsFunc(region, func(c condition) bool { return c.dimension == dim }) {
			dims = append(dims, dim)
		}
	}
	return dims
}

// outranked reports whether Kong runs another plugin in place of p for all requests of a region.
func (k *kong) outranked(p *kongPlugin, region []condition) bool {
	return slices.ContainsFunc(k.read, func(other kongPlugin) bool {
		return k.look() && other.rank > p.rank && len(other.limits) > 0 && other.limits[0].covers(region)
	})
}

// lifted reports whether another limit, or an allow, takes the place of one that Kong leaves out, for all requests.
func (k *kong) lifted(left kongLeft, allows []kongAllow) bool {
	lifts := func(other *imported) bool {
		return k.look() && other.takesPlaceOf(left.l) && other.covers(left.region)
	}
	for i := range k.read {
		for n := range k.read[i].limits {
			if lifts(&k.read[i].limits[n]) {
				return true
			}
		}
	}
	return slices.ContainsFunc(allows, func(a kongAllow) bool { return lifts(&a.imported) })
}
