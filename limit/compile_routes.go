package limit

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// mistakenDim is a name that a request has only as a dimension of its own, and that is often taken for something
// else.
type mistakenDim struct {
	advice string
	http   bool // /check sets it too
}

const (
	routeAdvice = `the route is op: when: {op: "GET /v1/x*"}`
	planAdvice  = "a limit of one plan stands in the list of that, among plans"
	fieldAdvice = "a header is a dimension with a name of its own, of the caller or by --http-dim-headers user=X-User-Id: when: {user: VALUE}"
	clockAdvice = "limits know no time of day; another program may change their file by the clock"
	addrAdvice  = "the address of the client is ip: when: {ip: 198.51.100.0/24}"
)

var mistakenDims = map[string]mistakenDim{
	"path": {routeAdvice, true}, "method": {routeAdvice, true}, "route": {advice: routeAdvice}, "operation": {advice: routeAdvice}, "operations": {advice: routeAdvice}, "uri": {advice: routeAdvice}, "request_uri": {advice: routeAdvice}, "endpoint": {advice: routeAdvice}, "url": {advice: routeAdvice},
	"header": {advice: fieldAdvice}, "headers": {advice: fieldAdvice}, "time": {advice: clockAdvice}, "hour": {advice: clockAdvice}, "weekday": {advice: clockAdvice},
	"plan": {advice: planAdvice}, "tier": {advice: planAdvice},
	"client_ip": {advice: addrAdvice}, "remote_addr": {advice: addrAdvice}, "remote_address": {advice: addrAdvice}, "source_ip": {advice: addrAdvice}, "addr": {advice: addrAdvice},
	"address": {advice: addrAdvice}, "ip_address": {advice: addrAdvice}, "remote_ip": {advice: addrAdvice}, "ipaddr": {advice: addrAdvice}, "clientip": {advice: addrAdvice}, "cidr": {advice: addrAdvice}, "network": {advice: addrAdvice},
}

// MistakenDim reports whether lint notes of a condition on a dimension that the file does not declare, because its name
// is often taken for something else.
func MistakenDim(name string) bool {
	_, is := mistakenDims[name]
	return is
}

// byAdvice has what a note says of a limit that counts by a dimension with an advice.
var byAdvice = map[string]string{addrAdvice: "the address of the client is ip: by: [ip]", planAdvice: planAdvice}

// forPlan returns what to write in place of a limit that counts by the plan alone, or "".
func (l *Limit) forPlan() string {
	if len(l.by) != 1 || mistakenDims[l.by[0].text].advice != planAdvice {
		return ""
	}
	return "write by: [tenant], as the list is that of the plan"
}

// noteMistakenDims notes once for each advice that a condition is on a dimension that is often taken for the op, a header, the clock, the
// plan or the address, unless the file declares that dimension or counts by it. It notes of a limit by such an address too.
func (c *compiler) noteMistakenDims() {
	counted := map[string]bool{}
	hasAddr := func(d dimension) bool {
		return slices.ContainsFunc(d.choices, func(p property) bool { return p.kind == propertyIP })
	}
	for _, l := range c.limits {
		for _, d := range l.by {
			if hasAddr(d) { // a chain has it, for requests without the others
				continue
			}
			for _, choice := range d.choices {
				advice := byAdvice[mistakenDims[choice.name].advice]
				if _, declared := c.dimensions[choice.name]; !declared && !counted[choice.name] && advice != "" {
					c.note(l.Line, "by", "requests have %s only if they carry DIM %[1]s: %s", choice.name, advice)
				}
				counted[choice.name] = true
			}
		}
	}
	noted := map[string]bool{}
	for _, l := range c.limits {
		for _, w := range l.when {
			dim, isMistaken := mistakenDims[w.name]
			if _, declared := c.dimensions[w.name]; !isMistaken || declared || counted[w.name] || noted[dim.advice] {
				continue
			}
			noted[dim.advice] = true
			of := ""
			if dim.http {
				of = ", as those of /check over HTTP do"
			}
			c.note(l.Line, "when."+w.name, "requests have it only if they carry DIM %s%s: %s", w.name, of, dim.advice)
		}
	}
}

// anyCaseMethod matches a method that an op may begin with. CONNECT and TRACE are none of a route.
const anyCaseMethod = `(?i:get|post|put|patch|delete|head|options)`

// The forms of an op that callers seldom write.
var (
	// methodAlone matches an op that begins with a method in small letters, or with one that not exactly one
	// blank separates from its path.
	methodAlone = regexp.MustCompile(`^(` + anyCaseMethod + `)([\s:]*)/`)
	// noSlash matches an op with a method and a path that does not begin with a slash.
	noSlash = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) ([\w.-]+/.*)$`)
	// grpcMethod matches the path of a method of gRPC, which is an op as it is: its service has a package.
	grpcMethod = regexp.MustCompile(`^/[\w*]+\.[\w.*]+(/\w*)?\*?$`)
	// urlAlone matches a URL, with a method or without.
	urlAlone = regexp.MustCompile(`^(?i:([a-z]+)\s+)?(?i:https?)://[^/]*(/.*)?$`)
)

// usualOp returns the op that gateways and middlewares send in the place of another one, or "". Of an op
// without a method, theirs is not known.
func usualOp(op string) string {
	if trimmed := strings.TrimSpace(op); trimmed != op && trimmed != "" {
		return cmp.Or(usualOp(trimmed), trimmed)
	}
	if route, found := withoutProtocol(op); found && strings.Contains(route, " /") {
		return cmp.Or(usualOp(route), route)
	}
	if route, _, found := strings.Cut(op, "?"); found && strings.Contains(route, " /") {
		op = route // gateways leave out the query
	}
	if IsMethod(op) {
		return op + " *"
	}
	if m := methodAlone.FindStringSubmatch(op); m != nil {
		return strings.ToUpper(m[1]) + " " + op[len(m[1])+len(m[2]):]
	}
	if m := noSlash.FindStringSubmatch(op); m != nil {
		return m[1] + " /" + m[2]
	}
	if m := urlAlone.FindStringSubmatch(op); m != nil {
		return strings.ToUpper(cmp.Or(m[1], "POST")) + " " + cmp.Or(m[2], "/")
	}
	if strings.HasPrefix(op, "/") && !grpcMethod.MatchString(op) {
		return "POST " + op
	}
	return ""
}

// lacksSlash matches an op with a method and one word, which may be a path that lacks its slash.
var lacksSlash = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) ([\w.{:-]\S*)$`)

// withSlash returns an op of lacksSlash with the slash, or "".
func withSlash(op string) string {
	if m := lacksSlash.FindStringSubmatch(op); m != nil && !strings.HasPrefix(m[2], "HTTP/") {
		return m[1] + " /" + m[2]
	}
	return ""
}

// prefixInSmall matches the beginning of ops with a method that is not in capitals.
var prefixInSmall = regexp.MustCompile(`^(` + anyCaseMethod + `)\*$`)

// withMethod returns an op with its method as gateways send it, if it stands behind the path, is misspelt or is not in capitals; otherwise "".
func withMethod(op string) string {
	first, second, _ := strings.Cut(op, " ")
	switch {
	case strings.HasPrefix(first, "/") && IsMethod(second):
		return strings.ToUpper(second) + " " + first
	case strings.HasPrefix(second, "/") && meantMethod(first) != "":
		return meantMethod(first) + " " + second
	case prefixInSmall.MatchString(op) && op != strings.ToUpper(op):
		return strings.ToUpper(op)
	}
	return ""
}

// namesOps reports whether a condition is on an op that is a name, such as getUser or delete, and no route: get* are names then.
func (c *compiler) namesOps() bool {
	return slices.ContainsFunc(c.set.Limits, func(l *Limit) bool {
		return slices.ContainsFunc(l.when, func(w condition) bool {
			return w.kind == propertyOp && !strings.ContainsAny(w.text, "/ ") && w.text != strings.ToUpper(w.text) && !prefixInSmall.MatchString(w.text)
		})
	})
}

// noteMethods notes once for a limit that a condition is on an op as callers seldom write it.
func (c *compiler) noteMethods() {
	noted, named := map[entry]bool{}, c.namesOps()
	for _, l := range c.set.Limits {
		for _, w := range l.when {
			if w.kind != propertyOp || noted[l.entry()] || named && prefixInSmall.MatchString(w.text) {
				continue
			}
			usual := cmp.Or(withMethod(w.text), usualOp(w.text), withSlash(w.text))
			usual = cmp.Or(usualOp(usual), usual) // a path behind a method may have a query

			if usual == "" || usual == w.text || regexpLike.MatchString(w.text) || inQuotes.MatchString(w.text) { // which has a warning
				continue
			}
			noted[l.entry()] = true
			if usual == strings.TrimSpace(w.text) {
				c.note(l.Line, "when.op", "%q holds only for an op with that blank in front or at its end: write %q", w.text, usual)
				continue
			}
			c.note(l.Line, "when.op", "%q holds only for an op that is written so, with its letters and blanks: gateways and middlewares send a method, a blank and a path, for example %q", w.text, usual)
		}
	}
}
