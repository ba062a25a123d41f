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
	if len(r.context.counted) == 0 {
		r.leaveOut("all locations and servers inside of its block have limit_req of their own, and nginx uses those alone")
		return false
	}
	l := &r.limit
	*l = imported{id: r.zone, burst: r.burst + 1, shadow: !r.context.enforced}
	var ok bool
	if l.by, ok = n.key(r, z); !ok {
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
	rank := nginxRank{r.context, strings.Join(l.by, ",")}
	if n.ranks[rank]++; n.ranks[rank] > 1 {
		l.group = fmt.Sprintf("nginx-%d", n.ranks[rank])
	}
	if r.delays && r.burst > 0 {
		r.remark("nginx holds requests of the burst back; here %d are admitted at once, and more are told when to come back", l.burst)
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
		return nil, "there is no limit_req_zone " + limit.Shorten(r.zone) + question(limit.Shorten(nearest(r.zone, known)))
	case z.mistake != "":
		return nil, fmt.Sprintf("limit_req_zone %s on line %d: %s", limit.Shorten(r.zone), z.line, z.mistake)
	}
	return z, ""
}

// location adds the condition on the path, and reports whether a limits file can express it.
func (n *nginx) location(r *limitRequest, l *imported) bool {
	if len(r.paths) == 0 {
		return true
	}
	at := r.paths[len(r.paths)-1]
	if at.isRegexp() {
		r.leaveOut("conditions have no regular expressions like that of location %s", limit.Shorten(at.path))
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
	l.when = []condition{{"path", pattern}}
	l.id += "-" + strings.Trim(at.path, "/")
	r.remark("location %s is a condition on path: services send DIM path with the path of the request", limit.Shorten(at.path))
	return true
}

// host adds the condition on the server, where there are several, and reports whether it can be
// said.
func (n *nginx) host(r *limitRequest, l *imported) bool {
	if r.server == nil || n.servers < 2 {
		return true
	}
	if len(r.server.names) == 0 || r.server.names[0] == "_" {
		r.remark("its server has the hosts that no other server names; here the limit counts requests of all hosts, and takes the place of less specific limits of other servers")
		return true
	}
	if len(r.server.names) != 1 {
		r.leaveOut("conditions have one name for a host, and its server has %d: %s", len(r.server.names), limit.Shorten(strings.Join(r.server.names, " ")))
		return false
	}
	if name := r.server.names[0]; !isHost(name) {
		r.leaveOut("conditions have one name for a host, and that of its server, %s, is none", limit.Quote(name))
		return false
	}
	l.when = append(l.when, condition{"host", strings.ToLower(r.server.names[0])})
	l.id += "-" + r.server.names[0]
	if n.sharesHost(r.server) {
		r.remark("several servers have the name %s: here the limits of each count for requests of all of them, and a more specific one takes the place of others", limit.Shorten(r.server.names[0]))
	}
	r.remark("server %s is a condition on host: services send DIM host, in small letters and without a port", limit.Shorten(r.server.names[0]))
	return true
}

// sharesHost reports whether requests of a host here may be those of another server too.
func (n *nginx) sharesHost(s *server) bool {
	if s == nil || n.servers < 2 {
		return false
	}
	if n.hosts == nil {
		n.hosts = map[string]int{}
		for _, c := range n.contexts {
			if c.name == "server" {
				n.hosts[n.hostOf(c.server)]++
			}
		}
	}
	host := n.hostOf(s)
	return host == "" || n.hosts[host] > 1
}

// key returns the dimensions of a zone's key, and reports whether a limits file can express it.
func (n *nginx) key(r *limitRequest, z *zone) (by []string, ok bool) {
	rest := z.key
	for rest != "" {
		name, behind, ok := nginxVariable(rest)
		if !ok {
			r.leaveOut("key %s of its zone is more than variables", limit.Shorten(z.key))
			return nil, false
		}
		rest = behind
		var dimension string
		switch {
		case isAddress(name):
			dimension = "ip"
		case n.maps[name].addresses():
			dimension = "ip"
			r.remark("$%s is the address of the client or empty, by the map on line %d; here all addresses count: write a limit with action: allow for those without it", limit.Shorten(name), n.maps[name].line)
		case name == "uri", name == "request_uri", name == "document_uri":
			dimension = "path"
		case name == "host", name == "server_name", name == "http_host":
			dimension = "host"
		case name == "remote_user":
			dimension = "user"
		case strings.HasPrefix(name, "http_"), strings.HasPrefix(name, "arg_"), strings.HasPrefix(name, "cookie_"):
			_, dimension, _ = strings.Cut(name, "_")
			n.noteHeader(word(dimension), name)
		default:
			dimension = name
		}
		if dimension != "ip" {
			r.remark("services send DIM %s with what nginx has in $%s; a request without it is not counted, as nginx counts none whose key is empty", word(dimension), limit.Shorten(name))
		}
		by = append(by, word(dimension))
	}
	if len(by) == 0 {
		r.leaveOut("its zone has no key")
	}
	return by, len(by) > 0
}

func isAddress(variable string) bool {
	return variable == "binary_remote_addr" || variable == "remote_addr"
}

// addresses reports whether each value of a map is the address of the client, or empty. There is no map for nil.
func (m *nginxMap) addresses() bool {
	if m == nil {
		return false
	}
	some := false
	for _, value := range m.values {
		name, rest, ok := nginxVariable(value)
		if value != "" && (!ok || rest != "" || !isAddress(name)) {
			return false
		}
		some = some || ok
	}
	return some
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
