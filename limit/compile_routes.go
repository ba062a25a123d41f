package limit

import (
	"regexp"
	"strings"
)

// routeDims are names that a request has only as dimensions of its own, and that are often taken for its
// op. Those of http are set by /check too.
var routeDims = map[string]struct{ http bool }{"path": {true}, "method": {true}, "route": {}, "endpoint": {}, "url": {}}

// noteRouteDims notes once for a file that a condition is on a dimension that is often taken for the op,
// unless the file declares that dimension or counts by it.
func (c *compiler) noteRouteDims() {
	counted := map[string]bool{}
	for _, l := range c.limits {
		for _, d := range l.by {
			for _, choice := range d.choices {
				counted[choice.name] = true
			}
		}
	}
	for _, l := range c.limits {
		for _, w := range l.when {
			kind, isRoute := routeDims[w.name]
			if _, declared := c.dimensions[w.name]; !isRoute || declared || counted[w.name] {
				continue
			}
			of := ""
			if kind.http {
				of = ", as those of /check over HTTP do"
			}
			c.warn(l.Line, "when."+w.name, `requests have it only if they carry DIM %s%s: the route is op: when: {op: "GET /v1/x*"}`, w.name, of)
			c.warnings[len(c.warnings)-1].Note = true
			return
		}
	}
}

// methodAlone matches an op that begins with a method in small letters, or with one that no blank
// separates from its path.
var methodAlone = regexp.MustCompile(`^((?i:get|post|put|patch|delete|head|options))( ?)/`)

// noteMethods notes once for a file that a condition is on an op as callers seldom write it.
func (c *compiler) noteMethods() {
	for _, l := range c.limits {
		for _, w := range l.when {
			parts := methodAlone.FindStringSubmatch(w.text)
			if parts == nil || w.kind != propertyOp {
				continue
			}
			usual := strings.ToUpper(parts[1]) + " " + w.text[len(parts[1])+len(parts[2]):]
			if usual == w.text {
				continue
			}
			c.warn(l.Line, "when.op", "%q holds only for an op that is written so, with its letters and blanks: most callers write %q", w.text, usual)
			c.warnings[len(c.warnings)-1].Note = true
			return
		}
	}
}
