package limitimport

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// directive reads a directive without a block.
func (n *nginx) directive(words []nginxWord) {
	line := words[0].line
	if of := n.context.values; of != nil && len(words) == 2 {
		if of.source == "" && words[0].text == "proxy" {
			n.remark(line, "geo takes the address of requests from %s out of X-Forwarded-For, and a key the address of the connection; here both are the ip that services send", limit.Shorten(words[1].text))
			return
		}
		of.add(words[0].text, words[1].text)
		return
	}
	switch words[0].text {
	case "hostnames":
		if of := n.context.values; of != nil {
			of.hostnames = true
		}
	case "return":
		n.answers(line)
	case "break":
		n.context.broken = n.context.name != "if"
		n.context.markBreak()
	case "rewrite":
		n.redirects(words)
	case "try_files", "error_page":
		n.passes(words)
	case "limit_req_zone":
		n.zone(words)
	case "limit_req":
		n.request(words)
	case "limit_req_dry_run":
		n.dryRun(words)
	case "server_name":
		n.nameServer(words[1:])
	case "listen":
		if n.server != nil && len(words) > 1 {
			n.server.listens = append(n.server.listens, listenOf(words[1:]))
		}
	case "include":
		if len(words) > 1 && !hasNoLimits(words[1].text) {
			n.remark(line, "%s is not read: import what nginx -T prints, which has all files", limit.Shorten(words[1].text))
			n.unread = true
		}
	case "limit_conn_zone":
		n.connectZone(words)
	case "limit_conn":
		n.connect(words)
	default:
		if isLua(words[0].text) {
			n.remarkOnce(line, ofLua)
		}
		if strings.Contains(words[0].text, "set") { // set, auth_request_set, js_set and those of modules
			n.noteSet(words[1:min(len(words), 3)])
		}
		n.remarkMisspelt(words[0], limitDirectives, otherDirectives)
	}
}

// nameServer reads the names of a server.
func (n *nginx) nameServer(words []nginxWord) {
	if n.server == nil {
		return
	}
	for _, w := range words {
		if w.text != "_" && w.text != "" { // no host has these names
			n.server.names = append(n.server.names, w.text)
		}
	}
}

// noteSet notes variables that a directive sets.
func (n *nginx) noteSet(words []nginxWord) {
	for _, w := range words {
		if name, found := strings.CutPrefix(w.text, "$"); found {
			n.set[name] = true
		}
	}
}

// hasNoLimits reports whether an included file is one that comes with nginx, of types or of parameters for other servers.
func hasNoLimits(path string) bool {
	name := filepath.Base(path)
	return name == "mime.types" || name == "fastcgi.conf" || strings.HasSuffix(name, "_params")
}

// zone reads limit_req_zone KEY zone=NAME:SIZE rate=RATE.
func (n *nginx) zone(words []nginxWord) {
	z := &zone{line: words[0].line}
	name, unknown := "", ""
	for i, w := range words[1:] {
		switch option, value, _ := strings.Cut(w.text, "="); {
		case option == "zone":
			name, _, _ = strings.Cut(value, ":")
		case option == "rate":
			z.rate = value
		case i == 0:
			z.key = w.text
		case option != "sync" && unknown == "":
			unknown = fmt.Sprintf("%s is not known%s", limit.Shorten(w.text), nearOption(w.text, "zone", "rate"))
		}
	}
	switch old := n.zones[name]; {
	case name == "" && unknown != "":
		n.remark(z.line, "limit_req_zone is not read: %s", unknown)
		return
	case name == "":
		n.remark(z.line, "limit_req_zone is not read: zone=NAME:SIZE is missing")
		return
	case old != nil:
		n.remark(z.line, "limit_req_zone %s is not read: it stands on line %d already, and nginx refuses two of one name", limit.Shorten(name), old.line)
		return
	}
	if z.mistake = unknown; z.key == "" {
		z.mistake = fmt.Sprintf("its key is missing: limit_req_zone $binary_remote_addr zone=%s:10m rate=1r/s", limit.Shorten(name))
	}
	n.zones[name] = z
}

// answers notes that a return answers the requests of the context, as in a server that redirects to another one. A return in
// an if, or behind a break, answers some of them.
func (n *nginx) answers(line int) {
	c := n.context
	switch {
	case c.broken: // it never runs
		return
	case c.breaks:
		n.answering = append(n.answering, answering{c, line})
		return
	case c.name == "if" || c.name == "server":
		n.answering = append(n.answering, answering{c.outer, line})
	}
	if c.returns || c.name != "server" && c.name != "location" {
		return
	}
	c.returns = true
	if c.name == "server" {
		n.servers--
	}
}

// mostOptionMistakes bounds the options of one limit_req whose values are mistakes in a remark.
const mostOptionMistakes = 4

const requestOptions = ": limit_req takes zone=NAME, burst=N, nodelay and delay=N"

// request reads limit_req zone=NAME [burst=NUMBER] [nodelay | delay=NUMBER].
func (n *nginx) request(words []nginxWord) {
	r := limitRequest{line: words[0].line, delays: true, server: n.server, context: n.context}
	n.context.limits++
	var mistakes, unknown []string
	for _, w := range words[1:] {
		mistake := ""
		switch option, value, _ := strings.Cut(w.text, "="); option {
		case "zone":
			r.zone = value
		case "burst":
			r.burst, mistake = nginxNumber(w.text, value)
		case "nodelay":
			r.delays = false
		case "delay":
			_, mistake = nginxNumber(w.text, value)
		default:
			r.unknown = cmp.Or(r.unknown, w.text)
			unknown = append(unknown, limit.Shorten(w.text))
		}
		if mistake != "" && len(mistakes) < mostOptionMistakes {
			mistakes = append(mistakes, mistake)
		}
	}
	switch len(unknown) { // last, as the word that is meant stands behind it
	case 0:
	case 1:
		mistakes = append(mistakes, unknown[0]+" is not known"+requestOptions)
	default:
		mistakes = append(mistakes, named(unknown)+" are not known"+requestOptions)
	}
	switch name := n.context.name; {
	case name != "" && name != "http" && name != "server" && name != "location":
		r.mistake = fmt.Sprintf("it stands inside of %s, where nginx refuses it", limit.Shorten(name))
	case len(mistakes) > 0:
		r.mistake = strings.Join(mistakes, "; ")
	case r.zone == "":
		r.mistake = "zone=NAME is missing"
	}
	n.requests = append(n.requests, r)
}

// nginxNumber reads the number of an option, and returns the mistake in it, or "".
func nginxNumber(option, value string) (number int64, mistake string) {
	number, err := strconv.ParseInt(value, 10, 64)
	switch {
	case isTooLarge(number, err) || number == bucket.MaxCapacity: // one more is admitted
		return 0, limit.Shorten(option) + " is too large"
	case err != nil || number < 1:
		return 0, limit.Shorten(option) + " is no number of requests above zero"
	}
	return number, ""
}

// nearOption returns a question for the option that a word resembles, or "".
func nearOption(text string, options ...string) string {
	option, value, found := strings.Cut(text, "=")
	near := nearest(option, options)
	if near != "" && found {
		near += "=" + value
	}
	return question(limit.Shorten(near))
}

// dryRun reads limit_req_dry_run on or off.
func (n *nginx) dryRun(words []nginxWord) {
	how := ""
	if len(words) > 1 {
		how = words[1].text
	}
	on := strings.EqualFold(how, "on")
	if !on && !strings.EqualFold(how, "off") {
		n.remark(words[0].line, "limit_req_dry_run %s is neither on nor off: the limit is enforced", limit.Shorten(how))
	}
	n.context.dry, n.context.dryLine = on, words[0].line
}

// nginxBegins are directives that stand at the beginning of a line: where one is a further word of another
// directive, that one lacks its ; at the end.
var nginxBegins = map[string]bool{
	"http": true, "server": true, "location": true, "if": true, "upstream": true, "include": true, "listen": true, "server_name": true, "proxy_pass": true,
	"limit_req": true, "limit_req_zone": true, "limit_req_dry_run": true, "limit_req_status": true, "limit_conn": true, "limit_conn_zone": true,
}

// checkEnd returns an error if a directive goes on with a line that begins another one.
func checkEnd(directive []nginxWord) error {
	for i := 1; i < len(directive); i++ {
		w, last := directive[i], directive[i-1]
		if w.quoted || w.line == last.line || !nginxBegins[w.text] && !(i > 1 && isOddLimitWord(directive[0].text, w.text)) {
			continue
		}
		return at(last.line, fmt.Errorf("; is missing behind %s: the directive %s begins on line %d", limit.Shorten(last.text), limit.Shorten(w.text), w.line))
	}
	return nil
}

// isOddLimitWord reports whether a word cannot be one of a directive of limits.
func isOddLimitWord(directive, word string) bool {
	switch directive {
	case "limit_req", "limit_req_zone", "limit_req_dry_run":
		return !strings.ContainsAny(word, "=$") && word != "nodelay" && word != "sync"
	}
	return false
}
