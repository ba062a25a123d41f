package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// mostNamed bounds the limits that a warning or a note of a report names.
const mostNamed = 8

// refusals count, by plan and id of a limit, the requests that lack a dimension of a limit with missing: deny, which no bucket counts.
type refusals map[[2]string]*refused

// refused are those of a limit that it denied, and those that it would deny if it were enforced.
type refused struct {
	limit         *limit.Limit // one of them: tenants may override it
	denied, would int64
}

// add counts those of one request. A request that a ban refuses would be denied with the dimension, too, and a proxy may have admitted it.
func (r refusals) add(o *outcome) {
	for i := range o.applied {
		ap := &o.applied[i]
		switch lacks := ap.refused && ap.limit.Action == limit.ActionLimit; {
		case !lacks:
		case ap.wouldDeny:
			r.of(ap.limit).would++
		case !o.allowed && o.limitID == ap.limit.ID && !slices.ContainsFunc(o.applied, applied.bans):
			r.of(ap.limit).denied++
		}
	}
}

// of returns the counts of a limit.
func (r refusals) of(l *limit.Limit) *refused {
	key := [2]string{l.Plan, l.ID}
	if r[key] == nil {
		r[key] = &refused{limit: l}
	}
	return r[key]
}

// bans reports whether an enforced limit with action: deny applied.
func (ap applied) bans() bool {
	return ap.refused && !ap.wouldDeny && ap.limit.Action == limit.ActionDeny
}

// warnings returns a sentence for each limit of each kind, of requests in all, those of the most requests first.
func (r refusals) warnings(requests int64) (all []string) {
	of := slices.SortedFunc(maps.Values(r), func(a, b *refused) int {
		return cmp.Or(cmp.Compare(b.denied+b.would, a.denied+a.would), cmp.Compare(a.limit.Ordinal, b.limit.Ordinal), strings.Compare(a.limit.Plan, b.limit.Plan))
	})
	for _, one := range of[:min(len(of), mostNamed)] {
		dims := slices.DeleteFunc(one.limit.Level(), func(name string) bool { return name == "tenant" })
		lack := fmt.Sprintf("for want of %s, without which %s denies (missing: deny)", strings.Join(dims, " or "), r.name(one.limit))
		if one.denied > 0 {
			all = append(all, fmt.Sprintf("%d of %d were denied %s: no other limit counts them", one.denied, requests, lack))
		}
		if one.would > 0 {
			all = append(all, fmt.Sprintf("%d of %d would be denied %s, if it were enforced", one.would, requests, lack))
		}
	}
	switch rest := len(of) - mostNamed; {
	case rest == 1:
		all = append(all, "requests also lack a dimension of 1 more limit with missing: deny")
	case rest > 1:
		all = append(all, fmt.Sprintf("requests also lack a dimension of %d more limits with missing: deny", rest))
	}
	return all
}

// name returns the id of a limit, with its plan if a limit of another one has the same.
func (r refusals) name(l *limit.Limit) string {
	for key := range r {
		if key[1] == l.ID && key[0] != l.Plan {
			return l.ID + " of plan " + l.Plan
		}
	}
	return l.ID
}
