package limitimport

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// kongPlugin is a plugin with its limits, one for each window.
type kongPlugin struct {
	line   int
	rank   int  // Kong runs only the plugin of the highest rank of those that a request meets
	local  bool // each node of Kong counts by itself
	limits []imported
	notes  []string   // remarks on it
	left   []kongLeft // the limits that Kong leaves out for this one, and that may count here too
}

// kongLeft is a limit of a plugin that Kong leaves out for another one, and that no allow lifts.
type kongLeft struct {
	line   int         // of the plugin that Kong leaves out
	l      *imported   // its limit
	region []condition // of the requests that both have
}

// kongRanks are the sets of entities that a plugin may have, in ascending order of precedence, see
// https://developer.konghq.com/gateway/entities/plugin/#plugin-precedence.
var kongRanks = []string{"", "service", "route", "consumer", "service route", "service consumer", "route consumer", "service route consumer"}

// kongRank returns the rank of a plugin that stands in the entity of the last condition of a scope, and may name
// others. A route in a service is no pair of both.
func kongRank(n *yaml.Node, scope []condition) int {
	var entities []string
	for _, s := range kongScopes {
		if isSet(n, s.entity) || len(scope) > 0 && scope[len(scope)-1].dimension == s.dimension {
			entities = append(entities, s.entity)
		}
	}
	return slices.Index(kongRanks, strings.Join(entities, " "))
}

const (
	// maxKongCompared bounds the pairs of limits that are compared for the precedence of their plugins.
	maxKongCompared = 1_000_000
	// maxKongAllows bounds the limits that admit what Kong leaves out.
	maxKongAllows = 1000
)

// addPlugins adds the limits of all plugins. A limit here takes the place of less specific ones of its level and
// group. Where Kong leaves out a plugin for another reason, a limit with action: allow lifts it.
func (k *kong) addPlugins() {
	k.dropRepeated()
	k.dropUnused()
	k.isolateTied()
	allows := k.allows()
	for k.isolateHidden(allows) {
		allows = k.allows()
	}
	for i := range k.read {
		k.replaceCoarser(&k.read[i])
		if len(k.read[i].limits) == 0 {
			continue // left out
		}
		for _, text := range k.read[i].notes {
			k.remarkOnce(k.read[i].line, text)
		}
	}
	for i := range k.read {
		for _, l := range k.read[i].limits {
			k.add(l)
		}
		for _, l := range allows {
			if l.of == i {
				l.coarser = k.liftedBy(&l.imported)
				k.add(l.imported)
			}
		}
	}
	k.name()
	for i := range k.read {
		k.remarkBoth(&k.read[i], allows)
	}
	k.remarkLocal()
	if k.compared > maxKongCompared {
		k.remark(1, "there are more plugins than are compared: see with limitgate limits explain which of them count for a request, of which Kong runs one alone")
	}
}

// replaceCoarser makes a limit of a plugin replace those that Kong leaves out for the plugin and that count by less, where the
// plugin counts: a request without its dimensions counts for them.
func (k *kong) replaceCoarser(p *kongPlugin) {
	p.left = slices.DeleteFunc(p.left, func(left kongLeft) bool {
		finer := &p.limits[0]
		if !finer.isFinerThan(left.l) {
			return false
		}
		finer.coarser = append(finer.coarser, left.l.key())
		return true
	})
}

// pairs calls look with each limit of a plugin, the loser, that Kong leaves out for another one, the winner. It ends
// after maxKongCompared pairs of all its calls.
func (k *kong) pairs(look func(winner, loser int, l *imported)) {
	for i := range k.read {
		for j := range k.read {
			winner, loser := &k.read[i], &k.read[j]
			if winner.rank <= loser.rank || len(winner.limits) == 0 {
				continue
			}
			for n := range loser.limits {
				if k.compared++; k.compared > maxKongCompared {
					return
				}
				if l := &loser.limits[n]; winner.limits[0].meets(l.when) {
					look(i, j, l)
				}
			}
		}
	}
}

// apart reports whether one of two limits is of a route, and the other of a service that the route does not have.
func (k *kong) apart(a, b *imported) bool {
	route, service := "", ""
	for _, c := range slices.Concat(a.when, b.when) {
		switch c.dimension {
		case "route":
			route = c.pattern
		case "service":
			service = c.pattern
		}
	}
	of, known := k.services[route]
	return route != "" && service != "" && known && !k.several[route] && of != service
}

// dropRepeated drops plugins of the same entities as another one, of which Kong has one at most.
func (k *kong) dropRepeated() {
	lines := map[string]int{}
	for i := range k.read {
		p := &k.read[i]
		if len(p.limits) == 0 {
			continue
		}
		of := strconv.Itoa(p.rank)
		for _, s := range kongScopes {
			for _, c := range p.limits[0].when {
				if c.dimension == s.dimension && slices.Contains(strings.Fields(kongRanks[p.rank]), s.entity) {
					of += "\x00" + c.pattern
				}
			}
		}
		if lines[of] > 0 {
			k.remark(p.line, "a plugin is not imported: the plugin on line %d is of the same entities, and Kong refuses two", lines[of])
			p.limits = nil
			continue
		}
		lines[of] = p.line
	}
}

// dropUnused drops the limits of plugins that Kong never runs, as another one has all of their requests.
func (k *kong) dropUnused() {
	unused := map[int]int{}
	k.pairs(func(winner, loser int, l *imported) {
		if p := &k.read[winner]; p.countsAll() && p.limits[0].covers(l.when) {
			unused[loser] = p.line
		}
	})
	for i, line := range unused {
		k.remark(k.read[i].line, "a plugin is not imported: Kong runs that on line %d for all of its requests", line)
		k.read[i].limits = nil
	}
}

// isolateTied gives a limit another group if one of a plugin that Kong leaves out is as specific, or more.
func (k *kong) isolateTied() {
	tied := map[*imported]bool{}
	k.pairs(func(winner, _ int, l *imported) {
		for n := range k.read[winner].limits {
			if own := &k.read[winner].limits[n]; own.place() == l.place() && own.compareRank(l) >= 0 {
				tied[own] = true
			}
		}
	})
	for i := range k.read {
		for n := range k.read[i].limits {
			if l := &k.read[i].limits[n]; tied[l] {
				k.isolate(&k.read[i], l)
			}
		}
	}
}

// isolate gives a limit of a plugin the group of its window and of the plugins with the same kinds of entities, and reports
// whether it had another one. These plugins have no request together.
func (k *kong) isolate(p *kongPlugin, l *imported) bool {
	group := window(l) + "-" + strings.ReplaceAll(kongRanks[p.rank], " ", "-")
	was := l.group
	l.group = group
	return was != group
}

// window returns the window of a limit.
func window(l *imported) string {
	name, _, _ := strings.Cut(l.group, "-")
	return name
}

// kongAllow is a limit that lifts another one where a plugin runs in place of it.
type kongAllow struct {
	imported
	of int // the plugin that runs
}

// allows returns limits that lift those of plugins that Kong leaves out, unless limits of the plugin that runs take
// their place.
func (k *kong) allows() (allows []kongAllow) {
	for i := range k.read {
		k.read[i].left = nil
	}
	seen := map[string]bool{}
	k.pairs(func(winner, loser int, l *imported) {
		p, allow := &k.read[winner], l.allow()
		allow.when = union(p.limits[0].when, l.when)
		at := fmt.Sprint(allow.place(), allow.when)
		switch {
		case p.takesPlace(l), seen[at], k.apart(&p.limits[0], l):
		case !p.countsAll() || len(allows) == maxKongAllows:
			p.left = append(p.left, kongLeft{k.read[loser].line, l, allow.when})
		default:
			seen[at] = true
			allow.id = kongID(allow.when, window(l)) + "-allow"
			allows = append(allows, kongAllow{allow, winner})
		}
	})
	return allows
}

// isolateHidden gives limits other groups that an allow of a plugin of lower rank would lift too, or that are as
// specific as an allow, and reports whether there are any.
func (k *kong) isolateHidden(allows []kongAllow) bool {
	found := false
	for _, allow := range allows {
		place, rank := allow.place(), k.read[allow.of].rank
		for i := range k.read {
			for n := range k.read[i].limits {
				l := &k.read[i].limits[n]
				if k.compared++; k.compared > maxKongCompared {
					return false
				}
				if l.place() != place || !l.meets(allow.when) {
					continue
				}
				if before := l.compareRank(&allow.imported); before == 0 || before > 0 && k.read[i].rank > rank {
					found = k.isolate(&k.read[i], l) || found
				}
			}
		}
	}
	return found
}

// look counts a comparison for the remarks, and reports whether it is one of the first maxKongCompared.
func (k *kong) look() bool {
	k.looked++
	return k.looked <= maxKongCompared
}

// remarkLocal remarks once on all plugins with the policy local.
func (k *kong) remarkLocal() {
	var local []int
	for i := range k.read {
		if k.read[i].local && len(k.read[i].limits) > 0 {
			local = append(local, k.read[i].line)
		}
	}
	if len(local) == 0 {
		return
	}
	slices.Sort(local)
	local = slices.Compact(local)
	of := ""
	if len(local) > 1 {
		of = " (lines " + namedLines(local) + ")"
	}
	k.remark(local[0], "with policy local%s, which is the default, each node of Kong counts by itself; here all proxies of a store count together", of)
}

// takesPlace reports whether a limit of a plugin takes the place of l.
func (p *kongPlugin) takesPlace(l *imported) bool {
	return slices.ContainsFunc(p.limits, func(own imported) bool { return own.takesPlaceOf(l) })
}

// countsAll reports whether the limits of a plugin count all requests that Kong runs it for: a request may lack other
// dimensions than those of its entities.
func (p *kongPlugin) countsAll() bool {
	first := &p.limits[0]
	return !slices.ContainsFunc(first.by, func(dim string) bool {
		return dim != "tenant" && dim != "ip" && (dim == "path" || !slices.ContainsFunc(first.when, func(c condition) bool { return c.dimension == dim }))
	})
}

// union returns the conditions of a and b, each once, in the order of kongScopes, the others behind them.
func union(a, b []condition) []condition {
	all := slices.Clone(a)
	for _, c := range b {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	place := func(c condition) int {
		if i := slices.IndexFunc(kongScopes, func(s kongScope) bool { return s.dimension == c.dimension }); i >= 0 {
			return i
		}
		return len(kongScopes)
	}
	slices.SortFunc(all, func(x, y condition) int { return cmp.Or(place(x)-place(y), strings.Compare(x.dimension, y.dimension)) })
	return all
}
