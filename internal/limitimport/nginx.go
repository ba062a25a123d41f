package limitimport

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Nginx imports limit_req_zone and limit_req of an nginx configuration, as
// https://nginx.org/en/docs/http/ngx_http_limit_req_module.html describes them. Locations become
// conditions on the dimension path. The error is one of the syntax.
func Nginx(content []byte) (Result, error) {
	words, err := nginxWords(string(content))
	if err != nil {
		return Result{}, err
	}
	n := &nginx{zones: map[string]*zone{}, uses: map[string][]int{}, inner: map[innerLimit]bool{}}
	if err := n.file(words); err != nil {
		return Result{}, err
	}
	for _, r := range n.requests {
		if z := n.zones[r.zone]; z != nil && len(r.paths) > 0 {
			n.inner[innerLimit{r.paths[len(r.paths)-1], r.rank, z.key}] = true
		}
	}
	for i := range n.requests {
		// Of a limit that is not imported only the reason is a remark.
		before := len(n.remarks)
		if !n.add(&n.requests[i]) {
			n.remarks = append(n.remarks[:before], n.remarks[len(n.remarks)-1:]...)
		}
	}
	if len(n.requests) == 0 {
		n.remark(1, "there is no limit_req: nothing is imported")
	}
	n.remarkShared()
	n.remarkOuter()
	return n.result(), nil
}

// zone is a limit_req_zone.
type zone struct {
	key, rate string
	line      int
}

// limitRequest is a limit_req in its context.
type limitRequest struct {
	zone        string
	burst       int64
	delays, dry bool
	paths       []location // from the outermost
	server      *server    // nil outside of a server
	rank        int        // its place among those of its context
	mistake     string     // the word that cannot be read, or ""
	line        int
}

// innerLimit is what a limit_req of a location counts by.
type innerLimit struct {
	location
	rank int
	key  string
}

// place is a location of a server.
type place struct {
	location
	server *server
}

// server is a server block, whose name may stand behind what is in it.
type server struct{ names []string }

type location struct {
	modifier, path string
	line           int
}

// nginx is a configuration that is being read.
type nginx struct {
	draft
	zones    map[string]*zone
	uses     map[string][]int // the lines of the limits that were imported of a zone
	requests []limitRequest
	inner    map[innerLimit]bool // of requests
	paths    []location
	places   []place // all locations
	server   *server
	servers  int
	dry      []bool // limit_req_dry_run of each context
	enforced bool   // limit_req_dry_run is off somewhere
}

// maxNginxDepth bounds the blocks in each other.
const maxNginxDepth = 32

var (
	errNginxEnd   = errors.New("a directive does not end with ; or a block, as in an nginx.conf")
	errNginxBrace = errors.New("a } ends no block")
)

// at returns an error of a line.
func at(line int, err error) error { return fmt.Errorf("line %d: %w", line, err) }

// file reads the directives of a file, and the blocks in it.
func (n *nginx) file(words []nginxWord) error {
	rest, err := n.directives(words, 0)
	if err == nil && len(rest) > 0 {
		err = at(rest[0].line, errNginxBrace)
	}
	return err
}

// directives reads the directives of a file or a block, and returns the words from its end on.
func (n *nginx) directives(words []nginxWord, depth int) (rest []nginxWord, err error) {
	n.dry = append(n.dry, depth > 0 && n.dry[len(n.dry)-1])
	defer func() { n.dry = n.dry[:len(n.dry)-1] }()
	first, rank := len(n.requests), 0
	for len(words) > 0 && !words[0].is("}") {
		end := 0
		for end < len(words) && !words[end].is(";") && !words[end].is("{") && !words[end].is("}") {
			end++
		}
		if end == len(words) || words[end].is("}") {
			return nil, at(words[0].line, errNginxEnd)
		}
		directive, mark := words[:end], words[end]
		words = words[end+1:]
		if mark.is("{") {
			if words, err = n.block(directive, words, depth+1); err != nil {
				return nil, err
			}
		} else if len(directive) > 0 {
			n.directive(directive, &rank)
		}
	}
	n.inherit(first)
	return words, nil
}

// block reads the block of a directive, and returns the words behind it.
func (n *nginx) block(directive, words []nginxWord, depth int) (rest []nginxWord, err error) {
	line := 1
	if len(directive) > 0 {
		line = directive[0].line
	}
	if depth > maxNginxDepth {
		return nil, fmt.Errorf("line %d: there are more than %d blocks in each other", line, maxNginxDepth)
	}
	paths, outer := n.paths, n.server
	defer func() { n.paths, n.server = paths, outer }()
	switch {
	case len(directive) > 1 && directive[0].text == "location":
		n.paths = append(n.paths, locationOf(directive))
		n.places = append(n.places, place{locationOf(directive), n.server})
	case len(directive) == 1 && directive[0].text == "server":
		n.server = &server{}
		n.servers++
	}
	if rest, err = n.directives(words, depth); err != nil {
		return nil, err
	}
	if len(rest) == 0 {
		return nil, at(line, fmt.Errorf("the block %s does not end: write } behind it", blockName(directive)))
	}
	return rest[1:], nil
}

// blockName returns the words in front of a block, or those that fit a line.
func blockName(directive []nginxWord) string {
	var words []string
	for _, w := range directive {
		words = append(words, w.text)
	}
	return fmt.Sprintf("%.64q", strings.Join(words, " "))
}

// inherit sets what directives of a context apply wherever they stand in it.
func (n *nginx) inherit(first int) {
	for i := first; i < len(n.requests); i++ {
		n.requests[i].dry = n.requests[i].dry || n.dry[len(n.dry)-1] && len(n.requests[i].paths) == len(n.paths)
	}
}

func locationOf(directive []nginxWord) location {
	l := location{path: directive[1].text, line: directive[0].line}
	if len(directive) > 2 {
		l.modifier, l.path = directive[1].text, directive[2].text
	}
	return l
}

// directive reads a directive without a block. Rank counts the limit_req of its context.
func (n *nginx) directive(words []nginxWord, rank *int) {
	line := words[0].line
	switch words[0].text {
	case "limit_req_zone":
		n.zone(words)
	case "limit_req":
		n.request(words, *rank)
		*rank++
	case "limit_req_dry_run":
		on := len(words) > 1 && words[1].text == "on"
		n.dry[len(n.dry)-1] = on
		n.enforced = n.enforced || !on
	case "server_name":
		if n.server != nil {
			for _, w := range words[1:] {
				n.server.names = append(n.server.names, w.text)
			}
		}
	case "include":
		if len(words) > 1 {
			n.remark(line, "%s is not read: join the files first, as nginx -T prints them", cut(words[1].text))
		}
	case "limit_conn", "limit_conn_zone":
		n.remark(line, "%s is not imported: limits of simultaneous work count by tenant, see algorithm: concurrency", words[0].text)
	}
}

// zone reads limit_req_zone KEY zone=NAME:SIZE rate=RATE.
func (n *nginx) zone(words []nginxWord) {
	z := &zone{line: words[0].line}
	name := ""
	for i, w := range words[1:] {
		switch {
		case i == 0:
			z.key = w.text
		case strings.HasPrefix(w.text, "zone="):
			name, _, _ = strings.Cut(w.text[len("zone="):], ":")
		case strings.HasPrefix(w.text, "rate="):
			z.rate = w.text[len("rate="):]
		}
	}
	n.zones[name] = z
}

// request reads limit_req zone=NAME [burst=NUMBER] [nodelay | delay=NUMBER].
func (n *nginx) request(words []nginxWord, rank int) {
	r := limitRequest{line: words[0].line, rank: rank, delays: true, server: n.server, paths: append([]location(nil), n.paths...)}
	for _, w := range words[1:] {
		switch name, value, _ := strings.Cut(w.text, "="); name {
		case "zone":
			r.zone = value
		case "burst":
			var err error
			if r.burst, err = strconv.ParseInt(value, 10, 64); err != nil || r.burst < 0 {
				r.mistake = w.text + " is no number of requests"
			}
		case "nodelay":
			r.delays = false
		case "delay":
		default:
			r.mistake = w.text + " is not known"
		}
	}
	n.requests = append(n.requests, r)
}

// add adds the limit of a limit_req, and reports whether it can be said. If not, the last remark has
// the reason.
func (n *nginx) add(r *limitRequest) bool {
	if r.mistake != "" {
		n.remark(r.line, "limit_req is not imported: %s", cut(r.mistake))
		return false
	}
	z := n.zones[r.zone]
	if z == nil {
		n.remark(r.line, "limit_req is not imported: there is no limit_req_zone %s", cut(r.zone))
		return false
	}
	l := imported{id: r.zone, burst: max(0, r.burst) + 1, shadow: r.dry && !n.enforced}
	var ok bool
	if l.by, ok = n.key(z, r.line); !ok {
		return false
	}
	if l.rate, ok = nginxRate(z.rate); !ok {
		n.remark(r.line, "limit_req is not imported: the rate of zone %s is %q: nginx has N r/s and N r/m", cut(r.zone), cut(z.rate))
		return false
	}
	if !n.location(r, &l) || !n.host(r, &l) {
		return false
	}
	if r.dry && n.enforced {
		n.remark(r.line, "limit_req_dry_run is on for some requests and off for others: the limit is enforced here, for all of them")
	}
	if r.rank > 0 {
		l.group = fmt.Sprintf("nginx-%d", r.rank+1)
	}
	if r.delays && r.burst > 0 {
		n.remark(r.line, "nginx holds requests of the burst back; here %d are admitted at once, and more are told when to come back", l.burst)
	}
	if n.draft.add(l) {
		n.uses[r.zone] = append(n.uses[r.zone], r.line)
	}
	return true
}

// location adds the condition on the path, and reports whether it can be said.
func (n *nginx) location(r *limitRequest, l *imported) bool {
	if len(r.paths) == 0 {
		return true
	}
	at := r.paths[len(r.paths)-1]
	pattern := at.path + "*"
	switch at.modifier {
	case "", "^~":
	case "=":
		pattern = at.path
	default:
		n.remark(r.line, "limit_req is not imported: conditions have no regular expressions like that of location %s", cut(at.path))
		return false
	}
	if strings.HasPrefix(at.path, "@") || strings.Contains(at.path, "*") {
		n.remark(r.line, "limit_req is not imported: location %s is no path of requests", cut(at.path))
		return false
	}
	if at.modifier != "=" {
		n.remarkBeside(r, at)
	}
	if pattern == "/*" {
		return true // every path
	}
	l.when = []condition{{"path", pattern}}
	l.id += "-" + strings.Trim(at.path, "/")
	n.remark(r.line, "location %s is a condition on path: services send DIM path with the path of the request", cut(at.path))
	return true
}

// host adds the condition on the server, where there are several, and reports whether it can be
// said.
func (n *nginx) host(r *limitRequest, l *imported) bool {
	if r.server == nil || n.servers < 2 {
		return true
	}
	if len(r.server.names) == 0 || r.server.names[0] == "_" {
		n.remark(r.line, "its server has the hosts that no other server names; here the limit counts requests of all hosts")
		return true
	}
	if len(r.server.names) != 1 || strings.ContainsAny(r.server.names[0], "*~") {
		n.remark(r.line, "limit_req is not imported: conditions have one name for a host, and its server has %d: %s", len(r.server.names), cut(strings.Join(r.server.names, " ")))
		return false
	}
	l.when = append(l.when, condition{"host", r.server.names[0]})
	l.id += "-" + r.server.names[0]
	n.remark(r.line, "server %s is a condition on host: services send DIM host", cut(r.server.names[0]))
	return true
}

// key returns the dimensions of a zone's key, and reports whether it can be said.
func (n *nginx) key(z *zone, line int) (by []string, ok bool) {
	rest := z.key
	for rest != "" {
		name, behind, ok := nginxVariable(rest)
		if !ok {
			n.remark(line, "limit_req is not imported: key %s of its zone is more than variables", cut(z.key))
			return nil, false
		}
		rest = behind
		var dimension string
		switch {
		case name == "binary_remote_addr", name == "remote_addr":
			dimension = "ip"
		case name == "uri", name == "request_uri", name == "document_uri":
			dimension = "path"
		case name == "host", name == "server_name", name == "http_host":
			dimension = "host"
		case name == "remote_user":
			dimension = "user"
		case strings.HasPrefix(name, "http_"), strings.HasPrefix(name, "arg_"), strings.HasPrefix(name, "cookie_"):
			_, dimension, _ = strings.Cut(name, "_")
		default:
			dimension = name
		}
		if dimension != "ip" {
			n.remark(line, "services send DIM %s with what nginx has in $%s; a request without it is not counted, as nginx counts none whose key is empty", word(dimension), cut(name))
		}
		by = append(by, word(dimension))
	}
	if len(by) == 0 {
		n.remark(line, "limit_req is not imported: its zone has no key")
	}
	return by, len(by) > 0
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
	for end < len(text) && (text[end] == '_' || text[end] >= 'a' && text[end] <= 'z' || text[end] >= 'A' && text[end] <= 'Z' || text[end] >= '0' && text[end] <= '9') {
		end++
	}
	return text[:end], text[end:], end > 0
}

// nginxRate returns 10r/s as 10/s.
func nginxRate(text string) (rate string, ok bool) {
	count, unit, found := strings.Cut(text, "r/")
	n, err := strconv.ParseInt(count, 10, 64)
	if !found || err != nil || n < 1 || unit != "s" && unit != "m" {
		return "", false
	}
	return fmt.Sprintf("%d/%s", n, unit), true
}

// cut shortens text of a configuration for a remark, and replaces control characters and what is
// not UTF-8.
func cut(text string) string {
	if len(text) > maxWord {
		text = text[:maxWord] + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
