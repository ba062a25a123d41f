package limit

import (
	"cmp"
	"regexp"
	"strings"
)

// routeDims are names that a request has only as dimensions of its own, and that are often taken for its
// op. Those of http are set by /check too.
var routeDims = map[string]struct{ http bool }{"path": {true}, "method": {true}, "route": {}, "endpoint": {}, "url": {}}

// isPlan has names that are often taken for the plan of a tenant.
var isPlan = map[string]bool{"plan": true, "tier": true}

// noteRouteDims notes once for a file that a condition is on a dimension that is often taken for the op, and once
// for the plan, unless the file declares that dimension or counts by it.
func (c *compiler) noteRouteDims() {
	counted := map[string]bool{}
	for _, l := range c.limits {
		for _, d := range l.by {
			for _, choice := range d.choices {
				counted[choice.name] = true
			}
		}
	}
	notedPlan, notedRoute := false, false
	for _, l := range c.limits {
		for _, w := range l.when {
			kind, isRoute := routeDims[w.name]
			if _, declared := c.dimensions[w.name]; !isRoute && !isPlan[w.name] || declared || counted[w.name] {
				continue
			}
			if isPlan[w.name] && !notedPlan {
				c.note(l.Line, "when."+w.name, "requests have it only if they carry DIM %s: a limit of one plan stands in the list of that, among plans", w.name)
				notedPlan = true
			}
			if !isRoute || notedRoute {
				continue
			}
			notedRoute = true
			of := ""
			if kind.http {
				of = ", as those of /check over HTTP do"
			}
			c.note(l.Line, "when."+w.name, `requests have it only if they carry DIM %s%s: the route is op: when: {op: "GET /v1/x*"}`, w.name, of)
		}
	}
}

// The forms of an op that callers seldom write.
var (
	// methodAlone matches an op that begins with a method in small letters, or with one that not exactly one
	// blank separates from its path.
	methodAlone = regexp.MustCompile(`^((?i:get|post|put|patch|delete|head|options))([\s:]*)/`)
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

// noteMethods notes once for a file that a condition is on an op as callers seldom write it.
func (c *compiler) noteMethods() {
	for _, l := range c.set.Limits {
		for _, w := range l.when {
			if w.kind != propertyOp {
				continue
			}
			usual := usualOp(w.text)
			if usual == "" || usual == w.text {
				continue
			}
			c.note(l.Line, "when.op", "%q holds only for an op that is written so, with its letters and blanks: gateways and middlewares send a method, a blank and a path, for example %q", w.text, usual)
			return
		}
	}
}
