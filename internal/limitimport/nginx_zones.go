package limitimport

import (
	"cmp"
	"maps"
	"slices"

	"github.com/limitgate/limitgate/limit"
)

// remarkZones remarks on zones that no limit_req names, or that there is no limit_req at all, unless these may be in a file that is not
// read.
func (n *nginx) remarkZones() {
	used := map[string]bool{}
	known := slices.SortedFunc(maps.Keys(n.zones), func(a, b string) int { return cmp.Compare(n.zones[a].line, n.zones[b].line) })
	for i := range n.requests {
		r := &n.requests[i]
		used[r.zone], used[r.unknown] = true, true
		if n.zones[r.zone] == nil { // its remark names that
			used[nearest(r.zone, known)] = true
		}
	}
	line := 0
	var unused []string
	for _, name := range known {
		if !used[name] {
			line, unused = cmp.Or(line, n.zones[name].line), append(unused, limit.Shorten(name))
		}
	}
	switch {
	case n.unread: // which may have them
	case len(unused) > 0:
		n.remark(line, "no limit_req has zone=%s, so that nginx limits nothing by it", named(unused))
	case len(n.requests) == 0:
		n.remark(1, "there is no limit_req")
	}
}
