package limitimport

import (
	"fmt"
	"slices"
)

// addLimits adds the limits of all limit_req, and the remarks on these.
func (n *nginx) addLimits() {
	n.groupLimits()
	n.mergeRepeated()
	n.leaveOutTied()
	n.separateExempting()
	places := map[string]bool{}
	for i := range n.requests {
		if r := &n.requests[i]; r.imported {
			n.limits = append(append(n.limits, r.limit), r.lifts...)
			places[r.limit.place()] = true
		}
	}
	if len(places) > usualLevels {
		n.maxLevels = min(len(places), mostLevels)
	}
	for i := range n.requests {
		r := &n.requests[i]
		if r.imported && n.draft.add(r.limit) {
			n.uses[r.zone] = append(n.uses[r.zone], r.line)
			n.addAllow(r)
			for _, lift := range r.lifts {
				n.draft.add(lift)
			}
			n.addExempted(r)
		}
		for _, text := range r.general {
			n.remarkOnce(r.line, text)
		}
		for _, text := range r.said {
			if !r.regexp { // remarkRegexps
				n.remark(r.line, "%s", text)
			}
		}
	}
}

// leaveOutTied leaves out the limit_req whose limit would have the same requests as another one: of two in each
// other the outer one, which nginx does not use where the inner one stands.
func (n *nginx) leaveOutTied() {
	first := map[string]*limitRequest{}
	for i := range n.requests {
		r := &n.requests[i]
		if !r.imported {
			continue
		}
		key := fmt.Sprint(r.limit.place(), r.limit.when, r.limit.shadow)
		other := first[key]
		switch {
		case other == nil:
			first[key] = r
		case other.limit.equals(&r.limit): // one limit
		case r.context.isInside(other.context):
			other.leaveOut(tiedText, r.line)
			first[key] = r
		default:
			r.leaveOut(tiedText, other.line)
		}
	}
	n.leaveOutSame(first)
	n.leaveOutUnnamed()
}

// leaveOutUnnamed leaves out the limit_req of servers without a name whose limits are as specific as those of others, by other
// conditions.
func (n *nginx) leaveOutUnnamed() {
	for i := range n.requests {
		r := &n.requests[i]
		if !r.imported || r.server == nil || n.servers < 2 || r.server.isNamed() {
			continue
		}
		for j := range n.requests {
			o := &n.requests[j]
			if n.compared++; o.imported && o.limit.shadow == r.limit.shadow && !o.limit.equals(&r.limit) && o.limit.tiesWith(&r.limit) {
				r.leaveOut("a limits file cannot tell its limit from that of line %d, which is as specific: give its server a name, such as server_name other.invalid", o.line)
				break
			}
		}
	}
}

const tiedText = "a limits file has one limit for its requests, here that of line %d"

// leaveOutSame leaves out further limit_req that have the limit of one that was left out.
func (n *nginx) leaveOutSame(first map[string]*limitRequest) {
	for i := range n.requests {
		r := &n.requests[i]
		if !r.imported {
			continue
		}
		if kept := first[fmt.Sprint(r.limit.place(), r.limit.when, r.limit.shadow)]; !kept.limit.equals(&r.limit) {
			r.leaveOut(tiedText, kept.line)
		}
	}
}

// addAllow adds a limit that admits the requests of a limit_req in dry run, if another limit would decide them:
// a limit in shadow mode takes the place of none.
func (n *nginx) addAllow(r *limitRequest) {
	if !r.limit.shadow {
		return
	}
	allow := r.limit.allow()
	needed := false
	for i := range n.requests {
		other := &n.requests[i]
		if !other.imported || other.limit.shadow || !other.limit.meets(allow.when) || !other.limit.hasPlaceOf(&allow) {
			continue
		}
		switch before := allow.compareRank(&other.limit); {
		case before < 0:
			needed = true
		case before == 0:
			r.remark("limit_req_dry_run is on, and here the limit of line %d is enforced for the same requests", other.line)
			return
		}
	}
	if needed && n.sharesHost(r.server) {
		r.remark("limit_req_dry_run is on, and here other limits are enforced for requests of its host")
		return
	}
	if needed && n.draft.add(allow) {
		r.allows = true
		n.limits = append(n.limits, allow)
	}
}

// maxHidden bounds how many pairs of limits are compared to find those that take the place of others.
const maxHidden = 10_000_000

// counts reports whether a limit of the file applies to requests of a region: no more specific one takes its
// place for all of them. Where there are too many limits to compare it does.
func (n *nginx) counts(l *imported, region []condition) bool {
	if !l.meets(region) {
		return false
	}
	there := slices.Concat(region, l.when)
	for i := range n.limits {
		other := &n.limits[i]
		if n.compared++; n.compared > maxHidden {
			return true
		}
		if (l.shadow || !other.shadow) && other.hasPlaceOf(l) && other.compareRank(l) < 0 && other.covers(there) {
			return false
		}
	}
	return true
}
