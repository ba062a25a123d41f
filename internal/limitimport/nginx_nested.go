package limitimport

import "slices"

// nestExempting finds the limit_req whose limits for networks inside of exempt ones leave all other limits of their place as they
// are. Those of one map may have such limits all or none.
func (n *nginx) nestExempting() {
	var nested []*limitRequest
	for i := range n.requests {
		if r := &n.requests[i]; r.exempting != nil {
			if r.nested = true; !n.isAlone(r) {
				nested = append(nested, r)
			}
		}
	}
	if networks := n.networksInside(nested); networks > maxNested {
		for _, r := range nested {
			r.nested = false
		}
		return
	}
	for len(nested) > 0 {
		left := slices.DeleteFunc(slices.Clone(nested), func(r *limitRequest) bool {
			r.nested = n.nests(r)
			return !r.nested
		})
		if len(left) == len(nested) {
			return
		}
		nested = left
	}
}

// maxNested bounds the limits for networks inside of exempt ones, where others have their place.
const maxNested = 500

// networksInside returns how many networks inside of exempt ones several limit_req have.
func (n *nginx) networksInside(requests []*limitRequest) (networks int) {
	for _, r := range requests {
		_, counted, _ := n.exempted(r.exempting, r.variable, true)
		networks += len(counted)
	}
	return networks
}

// nests reports whether limits of a limit_req for networks inside of exempt ones leave all other limits of its place as they are.
func (n *nginx) nests(r *limitRequest) bool {
	limits, why := n.exemptions(r, true)
	return why == "" && !slices.ContainsFunc(n.requests, func(o limitRequest) bool {
		n.compared++
		if !o.imported || !o.limit.hasPlaceOf(&r.limit) || o.limit.equals(&r.limit) || !o.limit.meets(r.limit.when) || r.limit.takesPlaceOf(&o.limit) {
			return false
		}
		of := o.exempting == r.exempting && o.nested && !o.limit.shadow
		return o.limit.compareRank(&r.limit) == 0 || !of && slices.ContainsFunc(limits, func(l imported) bool {
			return l.action == "" && l.compareRank(&o.limit) <= 0
		})
	})
}
