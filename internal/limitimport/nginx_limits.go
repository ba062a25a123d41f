package limitimport

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// readLimits reads the limit of each limit_req.
func (n *nginx) readLimits() {
	type statement struct {
		context *nginxContext
		zone    string
	}
	first := map[statement]int{} // the line
	for i := range n.requests {
		r := &n.requests[i]
		of := statement{r.context, r.zone}
		if r.imported = n.read(r); r.imported && first[of] > 0 {
			r.leaveOut("zone %s stands in its block on line %d already, and nginx refuses that", limit.Shorten(r.zone), first[of])
		}
		if first[of] == 0 {
			first[of] = r.line
		}
	}
}

// read reads the limit of a limit_req, and reports whether a limits file can express it. If not, the last remark
// on it has the reason.
func (n *nginx) read(r *limitRequest) bool {
	z, mistake := n.zoneOf(r)
	if mistake != "" {
		r.leaveOut("%s%s", mistake, r.ofOuter())
		return false
	}
	r.limit = imported{id: r.zone}
	if !n.key(r, z) {
		return false
	}
	if r.limit.rate, mistake = nginxRate(z.rate); mistake != "" {
		r.leaveOut("the rate of zone %s %s", limit.Shorten(r.zone), mistake)
		return false
	}
	if slices.Contains(r.limit.by, "ip") {
		r.remarkOnce(prefixText, "nginx")
	}
	return true
}

// leaveOutUnused leaves out the limit_req by which nginx counts no request of a site.
func (n *nginx) leaveOutUnused(sites []*site) {
	used := map[*limitRequest]bool{}
	for _, s := range sites {
		for _, a := range slices.Concat(s.areas, s.labeled) {
			for _, u := range a.uses {
				used[u.request] = true
				for _, r := range u.others {
					used[r] = true
				}
			}
		}
	}
	for i := range n.requests {
		r := &n.requests[i]
		switch {
		case !r.imported || used[r]:
		case strings.HasPrefix(r.context.location.path, "@"):
			r.leaveOut("location %s gets requests of other locations, and nginx counts those by it that it has not counted there: write limits for these", limit.Shorten(r.context.location.path))
		case r.context.isAnswered():
			r.leaveOut("a return answers all requests of its block, before nginx counts them")
		default:
			r.leaveOut("nginx counts no request by it: all locations and servers inside of its block have limit_req of their own, or a return that answers")
		}
	}
}

// zoneOf returns the zone of a limit_req, or the mistake in one of them.
func (n *nginx) zoneOf(r *limitRequest) (z *zone, mistake string) {
	z = n.zones[r.zone]
	switch known := slices.Sorted(maps.Keys(n.zones)); {
	case r.mistake != "" && r.unknown != "" && n.zones[r.unknown] != nil:
		return nil, r.mistake + question("zone="+limit.Shorten(r.unknown))
	case r.mistake != "" && r.unknown != "":
		return nil, r.mistake + nearOption(r.unknown, "zone", "burst", "nodelay", "delay")
	case r.mistake != "":
		return nil, r.mistake
	case z == nil:
		if n.unread {
			return nil, "there is no limit_req_zone " + limit.Shorten(r.zone) + " in the files that are read: import what nginx -T prints, which has all files"
		}
		if len(known) == 0 {
			return nil, "there is no limit_req_zone " + limit.Shorten(r.zone) + ": import what nginx -T prints, which has all files"
		}
		if near := nearest(r.zone, known); near != "" {
			return nil, "there is no limit_req_zone " + limit.Shorten(r.zone) + question(limit.Shorten(near))
		}
		return nil, "there is no limit_req_zone " + limit.Shorten(r.zone) + "; the zones are " + named(known)
	case z.mistake != "":
		return nil, fmt.Sprintf("limit_req_zone %s on line %d: %s", limit.Shorten(r.zone), z.line, z.mistake)
	}
	return z, ""
}

// nginxVariable takes $name or ${name} off the beginning of a key.
func nginxVariable(text string) (name, rest string, ok bool) {
	if !strings.HasPrefix(text, "$") {
		return "", "", false
	}
	text = text[1:]
	if strings.HasPrefix(text, "{") {
		return strings.Cut(text[1:], "}")
	}
	end := 0
	for end < len(text) && isWord(text[end]) {
		end++
	}
	return text[:end], text[end:], end > 0
}

// nginxRate returns 10r/s as 10/s, or the mistake in it.
func nginxRate(text string) (rate, mistake string) {
	count, unit, found := strings.Cut(text, "r/")
	n, err := strconv.ParseInt(count, 10, 64)
	switch {
	case text == "":
		return "", "is missing: rate=1r/s"
	case !found || unit != "s" && unit != "m":
		return "", fmt.Sprintf("is %q: nginx has N r/s and N r/m", limit.Shorten(text))
	case isTooLarge(n, err):
		return "", fmt.Sprintf("is too large: %s", limit.Shorten(text))
	case err != nil || n < 1:
		return "", fmt.Sprintf("is %q: nginx has whole numbers above zero", limit.Shorten(text))
	}
	return fmt.Sprintf("%d/%s", n, unit), ""
}
