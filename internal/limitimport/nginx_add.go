package limitimport

import (
	"fmt"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// addLimits adds the limits of all zones, and the remarks on them. The error says that there are too many.
func (n *nginx) addLimits() error {
	n.readLimits()
	sites, err := n.findSites()
	if err != nil {
		return err
	}
	n.leaveOutUnused(sites)
	all, err := n.layouts(n.zoneLimits(), sites)
	if err != nil {
		return err
	}
	for _, l := range all {
		for _, added := range l.limits {
			n.draft.add(added.imported)
		}
	}
	conditions := conditionLines(all)
	n.remarkKeys(conditions)
	n.remarkRequests()
	n.remarkDelays()
	n.remarkConditions(all, sites, conditions)
	n.remarkShared(all)
	n.remarkExcluded(all)
	n.remarkAnswering()
	n.remarkPassing()
	return nil
}

// remarkRequests remarks on limit_req.
func (n *nginx) remarkRequests() {
	for i := range n.requests {
		r := &n.requests[i]
		for _, text := range r.general {
			n.remarkOnce(r.line, text)
		}
		for _, text := range r.said {
			n.remark(r.line, "%s", text)
		}
	}
}

// remarkDelays remarks once on bursts that nginx holds back.
func (n *nginx) remarkDelays() {
	var lines []int
	for i := range n.requests {
		if r := &n.requests[i]; r.imported && r.delays && r.burst > 0 {
			lines = append(lines, r.line)
		}
	}
	if len(lines) > 0 {
		slices.Sort(lines)
		n.remark(lines[0], "nginx holds requests of a burst back, where nodelay is missing or delay is set, as on %s; here those of the burst are admitted at once, and more are denied with the time to try again", listOfLines(lines))
	}
}

// conditionLines returns the dimensions that limits have conditions on, each with the line of the first zone that has one.
func conditionLines(all []*layout) map[string]int {
	lines := map[string]int{}
	for _, l := range all {
		for _, added := range l.limits {
			for _, on := range added.when {
				if line := l.zones[0].first.line; lines[on.dimension] == 0 || line < lines[on.dimension] {
					lines[on.dimension] = line
				}
			}
		}
	}
	return lines
}

// wholeOfLong is how many bytes of a value of more than 256 /check sends, in front of its hash.
const wholeOfLong = 185

// remarkConditions says what services send for the conditions of limits.
func (n *nginx) remarkConditions(all []*layout, sites []*site, lines map[string]int) {
	longest := 0
	for _, l := range all {
		for _, added := range l.limits {
			for _, on := range added.when {
				if on.dimension == "path" {
					longest = max(longest, len(on.pattern))
				}
			}
		}
		for _, a := range l.labels {
			n.remarkLabel(a)
		}
	}
	if line := lines["path"]; line > 0 {
		long := "its first 256 bytes"
		if n.countsBy("path") && longest <= wholeOfLong {
			long = fmt.Sprintf("the first %d and a hash of it, as /check of limitgate serve --http sends it, since limits count by it, too", wholeOfLong)
		}
		n.remark(line, "locations are conditions on path: services send DIM path with the path of the request, of a longer one %s", long)
	}
	if line := lines[n.serverDimension()]; line > 0 {
		n.remark(line, "%s", n.serversText(sites[0]))
		n.remarkPatterns(sites)
	}
}

// remarkLabel says what services send for a location that no condition on the path can have.
func (n *nginx) remarkLabel(a *area) {
	why := "conditions have no regular expressions like that of location"
	if !a.context.location.isRegexp() {
		why = "no condition on path has the requests of location"
	}
	n.remark(a.context.line, "%s %s: services send DIM location %s with the requests that nginx gives it; without that they count as others of their paths", why, limit.Shorten(a.context.location.path), quoted(a.label))
}

// serversText says what services send for conditions on servers.
func (n *nginx) serversText(first *site) string {
	switch {
	case n.serverDimension() == "server_name":
		return "servers are conditions on server_name: services send DIM server_name with the first name of the server, in small letters, whichever of its names the request has"
	case len(first.servers) > 0:
		return "servers are conditions on host: services send DIM host, in small letters and without a port; for a host that no server names they send the name of the default server, if that has one, as no limit of a server with a name counts it otherwise"
	}
	return "servers are conditions on host: services send DIM host, in small letters and without a port; for a host that no server names they send the name of the default server, as no limit of a server counts it otherwise"
}

// remarkPatterns says what services send for servers whose first names are patterns.
func (n *nginx) remarkPatterns(sites []*site) {
	for _, s := range sites {
		for _, of := range s.servers {
			if s.host != "" && strings.ContainsAny(of.root.server.names[0], "*~$") {
				n.remark(of.root.line, "the first name of this server, %s, is a pattern: services send DIM %s %s with its requests", limit.Quote(of.root.server.names[0]), n.serverDimension(), quoted(s.host))
			}
		}
	}
}

// remarkAnswering remarks once on what answers some requests of limits before they count.
func (n *nginx) remarkAnswering() {
	limited := map[*nginxContext]bool{} // contexts with imported limit_req, and those around them
	byContext := n.byContext()
	for i := range n.requests {
		if r := &n.requests[i]; r.imported {
			for c := r.context; c != nil && !limited[c]; c = c.outer {
				limited[c] = true
			}
		}
	}
	var lines []int
	for _, a := range n.answering {
		imported := func(r *limitRequest) bool { return r.imported }
		if limited[a.context] || slices.ContainsFunc(byContext[a.context.limiting()], imported) {
			lines = append(lines, a.line)
		}
	}
	if len(lines) > 0 {
		n.remark(lines[0], "nginx answers requests by return or rewrite on %s before it counts them; here they count, if services ask about them", listOfLines(lines))
	}
}

// byContext returns the limit_req of each context.
func (n *nginx) byContext() map[*nginxContext][]*limitRequest {
	out := map[*nginxContext][]*limitRequest{}
	for i := range n.requests {
		r := &n.requests[i]
		out[r.context] = append(out[r.context], r)
	}
	return out
}

// listOfLines lists lines in order, as "lines 3, 7".
func listOfLines(lines []int) string {
	lines = slices.Compact(slices.Clone(lines))
	if len(lines) == 1 {
		return "line " + namedLines(lines)
	}
	return "lines " + namedLines(lines)
}
