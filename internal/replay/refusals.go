package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// mostRefusals bounds the limits whose refusals have a warning: further ones say no more.
const mostRefusals = 8

// refusals count, by limit, the requests that lack a dimension of a limit with missing: deny, which no bucket counts.
type refusals map[*limit.Limit]*refused

// refused are those of a limit that it denied, and those that it would deny if it were enforced.
type refused struct{ denied, would int64 }

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
	if r[l] == nil {
		r[l] = new(refused)
	}
	return r[l]
}

// bans reports whether an enforced limit with action: deny applied.
func (ap applied) bans() bool {
	return ap.refused && !ap.wouldDeny && ap.limit.Action == limit.ActionDeny
}

// warnings returns a sentence for each limit of each kind, of requests in all.
func (r refusals) warnings(requests int64) (all []string) {
	of := make([]*limit.Limit, 0, len(r))
	for l := range r {
		of = append(of, l)
	}
	slices.SortFunc(of, func(a, b *limit.Limit) int { return cmp.Or(a.Ordinal-b.Ordinal, strings.Compare(a.Plan, b.Plan)) })
	for _, l := range of[:min(len(of), mostRefusals)] {
		dims := slices.DeleteFunc(l.Level(), func(name string) bool { return name == "tenant" })
		lack := fmt.Sprintf("for want of %s, without which %s denies (missing: deny)", strings.Join(dims, " or "), l.ID)
		if n := r[l].denied; n > 0 {
			all = append(all, fmt.Sprintf("%d of %d were denied %s: no other limit counts them", n, requests, lack))
		}
		if n := r[l].would; n > 0 {
			all = append(all, fmt.Sprintf("%d of %d would be denied %s, if it were enforced", n, requests, lack))
		}
	}
	return all
}
