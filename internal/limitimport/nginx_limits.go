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
	for i := range n.requests {
		n.requests[i].imported = n.read(&n.requests[i])
	}
}

// read reads the limit of a limit_req, and reports whether a limits file can express it. If not, the last remark
// on it has the reason.
func (n *nginx) read(r *limitRequest) bool {
	z, mistake := n.zoneOf(r)
	if mistake != "" {
		r.leaveOut("%s", mistake)
		return false
	}
	switch counts := len(r.context.counted) > 0; {
	case !counts && r.context.isAnswered():
		r.leaveOut("a return answers all requests of its block, before nginx counts them")
		return false
	case !counts:
		r.leaveOut("nginx counts no request by it: all locations and servers inside of its block have limit_req of their own, or a return that answers")
		return false
	}
	l := &r.limit
	*l = imported{id: r.zone, burst: r.burst + 1, shadow: !r.context.enforced}
	if !n.key(r, z) {
		return false
	}
	if l.rate, mistake = nginxRate(z.rate); mistake != "" {
		r.leaveOut("the rate of zone %s %s", limit.Shorten(r.zone), mistake)
		return false
	}
	if !n.location(r, l) || !n.host(r, l) {
		return false
	}
	if r.context.isDry() && r.context.watched && r.context.enforced {
		r.remark("limit_req_dry_run is on for some requests and off for others: the limit is enforced here, for all of them")
	}
	if r.delays && r.burst > 0 {
		r.remarkOnce("nginx holds requests of a burst back, unless nodelay is set; here those of the burst are admitted at once, and more are denied with the time to try again")
	}
	return true
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
		if len(known) == 0 {
			return nil, "there is no limit_req_zone " + limit.Shorten(r.zone) + ": import all files together, as nginx -T prints them"
		}
		return nil, "there is no limit_req_zone " + limit.Shorten(r.zone) + question(limit.Shorten(nearest(r.zone, known)))
	case z.mistake != "":
		return nil, fmt.Sprintf("limit_req_zone %s on line %d: %s", limit.Shorten(r.zone), z.line, z.mistake)
	}
	return z, ""
}

// location adds the condition on the path, and reports whether a limits file can express it.
func (n *nginx) location(r *limitRequest, l *imported) bool {
	if r.context.name != "location" {
		return true
	}
	at := r.context.location
	if at.isRegexp() {
		r.leaveOut("conditions have no regular expressions like that of location %s", limit.Shorten(at.path))
		r.regexp = true
		return false
	}
	pattern, ok := at.pattern()
	if !ok {
		r.leaveOut("location %s is no path of requests", limit.Shorten(at.path))
		return false
	}
	if pattern == "/*" {
		return true // every path
	}
	l.when = append(l.when, condition{"path", pattern})
	l.id += "-" + strings.Trim(at.path, "/")
	r.remarkOnce(pathText)
	return true
}

// host adds the condition on the server, where there are several, and reports whether it can be
// said.
func (n *nginx) host(r *limitRequest, l *imported) bool {
	if r.server == nil || n.servers < 2 {
		return true
	}
	if !r.server.isNamed() {
		return true // remarkUnnamed
	}
	dimension, name := n.serverDimension(), r.server.names[0]
	if n.hostOf(r.server) == "" {
		r.leaveOut("the first name of its server, %s, is none that a condition can have: put a plain name in front", limit.Quote(name))
		return false
	}
	l.when = append(l.when, condition{dimension, n.hostOf(r.server)})
	l.id += "-" + name
	if n.sharesHost(r.server) {
		r.remarkOnce("several servers have the name %s: here the limits of each count for requests of all of them, and a more specific one takes the place of others", limit.Shorten(name))
	}
	r.remarkOnce("%s", n.serversText())
	return true
}

// pathText is the remark on conditions on the path.
const pathText = "locations are conditions on path: services send DIM path with the path of the request"

// serversText returns the remark on conditions on servers.
func (n *nginx) serversText() string {
	switch {
	case n.serverDimension() == "server_name":
		return "servers are conditions on server_name: services send DIM server_name with the first name of the server, in small letters, whichever of its names the request has"
	case n.hasUnnamed():
		return "servers are conditions on host: services send DIM host, in small letters and without a port: no limit of a server with a name counts another one"
	}
	return "servers are conditions on host: services send DIM host, in small letters and without a port, and for a host that no server names the name of the default server: no limit of a server counts another one"
}

// remarkConditions remarks on the conditions of a limit for a context.
func (n *nginx) remarkConditions(c *nginxContext, when []condition) {
	for _, on := range when {
		switch on.dimension {
		case "path":
			n.remarkOnce(c.line, pathText)
		case n.serverDimension():
			n.remarkOnce(c.line, n.serversText())
		}
	}
}

// hasUnnamed reports whether a server has the hosts that no other one names.
func (n *nginx) hasUnnamed() bool {
	return slices.ContainsFunc(n.contexts, func(c *nginxContext) bool { return c.name == "server" && !c.returns && !c.server.isNamed() })
}

// sharesHost reports whether requests of a host here may be those of another server too.
func (n *nginx) sharesHost(s *server) bool {
	if s == nil || n.servers < 2 {
		return false
	}
	if n.hosts == nil {
		n.hosts = map[string]int{}
		for _, c := range n.contexts {
			if c.name == "server" && !c.returns {
				n.hosts[n.hostOf(c.server)]++
			}
		}
	}
	host := n.hostOf(s)
	return host == "" || n.hosts[host] > 1
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
