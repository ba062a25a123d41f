package limitimport

import (
	"slices"

	"github.com/limitgate/limitgate/limit"
)

// zoneKind is a kind of requests that a zone counts, with a limit of its own.
type zoneKind struct {
	line       int // of its limit_req
	host, area string
}

// remarkShared remarks on zones with several limits, whose requests share units in nginx.
func (n *nginx) remarkShared(all []*layout) {
	for _, l := range all {
		for _, z := range l.zones {
			lines := n.sharing(z.zone, l.counted[z.zone])
			if len(lines) < 2 {
				continue
			}
			slices.Sort(lines)
			n.remark(lines[0], "all requests that nginx counts by zone %s share its units; here %d kinds of them have units of their own (limit_req on %s), so that they admit more together; where that matters, give each a part of the rate", limit.Shorten(z.zone), len(lines), listOfLines(lines))
		}
	}
}

// sharing returns the lines of the limits of a zone that share units with another one in nginx. Those whose requests differ in the
// key do not.
func (n *nginx) sharing(zone string, all []zoneKind) (lines []int) {
	key, _, _ := splitKey(n.zones[zone].key)
	has := func(names ...string) bool {
		return slices.ContainsFunc(key, func(variable string) bool { return slices.Contains(names, variable) })
	}
	// A host that no server names may be one of a server of another port.
	byHost := has("server_name") || has("host") && n.serverDimension() == "host" && !slices.ContainsFunc(all, func(c zoneKind) bool { return c.host == "" })
	byArea := has("uri", "document_uri") && !n.changesPaths && (byHost || !slices.ContainsFunc(all, func(c zoneKind) bool { return c.host != all[0].host }))
	of := func(c zoneKind) zoneKind {
		group := zoneKind{}
		if byHost {
			group.host = c.host
		}
		if byArea {
			group.area = c.area
		}
		return group
	}
	kinds := map[zoneKind]int{}
	for _, c := range all {
		kinds[of(c)]++
	}
	for _, c := range all {
		if kinds[of(c)] > 1 {
			lines = append(lines, c.line)
		}
	}
	return lines
}
