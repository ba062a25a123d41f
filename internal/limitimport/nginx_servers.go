package limitimport

import (
	"fmt"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// dropSameServers drops servers with the names and the blocks of an earlier one, as of one host on two ports: nginx counts the
// requests of both by the same zones.
func (n *nginx) dropSameServers() {
	inner := map[*nginxContext][]*nginxContext{}
	for _, c := range n.contexts {
		inner[c.outer] = append(inner[c.outer], c)
	}
	byContext, first, same := n.byContext(), map[string]bool{}, map[*nginxContext]bool{}
	for _, c := range n.contexts { // outer ones first
		if c.name != "server" || c.returns || !c.server.isNamed() {
			same[c] = same[c.outer]
			continue
		}
		var text strings.Builder
		fmt.Fprintf(&text, "%p %q", c.outer, c.server.names)
		writeBlock(&text, c, inner, byContext)
		if same[c] = first[text.String()]; same[c] {
			n.servers--
		}
		first[text.String()] = true
	}
	n.contexts = slices.DeleteFunc(n.contexts, func(c *nginxContext) bool { return same[c] })
	n.requests = slices.DeleteFunc(n.requests, func(r limitRequest) bool { return same[r.context] })
}

// writeBlock writes what decides in a context which limit_req count: two with one text count the same.
func writeBlock(b *strings.Builder, c *nginxContext, inner map[*nginxContext][]*nginxContext, byContext map[*nginxContext][]*limitRequest) {
	fmt.Fprintf(b, "{%q %q %q %v %v %v", c.name, c.location.modifier, c.location.path, c.dry, c.dryLine > 0, c.returns)
	for _, r := range byContext[c] {
		fmt.Fprintf(b, "; %q %d %v %q", r.zone, r.burst, r.delays, r.mistake)
	}
	for _, in := range inner[c] {
		writeBlock(b, in, inner, byContext)
	}
	b.WriteString("}")
}

// acmePath begins the paths that certificates are asked for by, see https://www.rfc-editor.org/rfc/rfc8555#section-8.3.
const acmePath = "/.well-known/"

// findRedirects marks the servers whose locations all answer by return, but for those of certificates, and whose name another
// server has too: they redirect to that one.
func (n *nginx) findRedirects() {
	counts := map[*nginxContext]bool{} // servers that count some requests
	for _, c := range n.contexts {
		if c.name != "location" || c.isAnswered() || strings.HasPrefix(c.location.path, acmePath) && c.limiting() == nil {
			continue
		}
		for at := c.outer; at != nil; at = at.outer {
			counts[at] = true
		}
	}
	var redirects []*nginxContext
	others := map[string]bool{} // the names of servers that do not redirect
	for _, c := range n.contexts {
		switch {
		case c.name != "server" || c.returns || !c.server.isNamed():
		case c.divided && !counts[c] && c.limits == 0:
			redirects = append(redirects, c)
		default:
			others[strings.ToLower(c.server.names[0])] = true
		}
	}
	for _, c := range redirects {
		if others[strings.ToLower(c.server.names[0])] {
			c.returns = true
			n.servers--
			n.answering = append(n.answering, answering{c.outer, c.line})
		}
	}
}

// dropUnreached drops locations inside of others that nginx gives no request, as another one beside an outer one comes first:
// nginx looks for the longest path in each block before it looks inside of that location.
func (n *nginx) dropUnreached() {
	beside := map[*nginxContext][]*nginxContext{} // the locations with paths in a context
	for _, c := range n.contexts {
		if _, ok := c.location.pattern(); ok && c.name == "location" {
			beside[c.outer] = append(beside[c.outer], c)
		}
	}
	dropped := map[*nginxContext]*nginxContext{}
	for _, c := range n.contexts { // outer ones first
		dropped[c] = dropped[c.outer]
		if _, ok := c.location.pattern(); !ok || c.name != "location" {
			continue
		}
		for at := c.outer; at != nil && at.name == "location" && dropped[c] == nil; at = at.outer {
			dropped[c] = at.before(c, beside[at.outer])
		}
	}
	n.contexts = slices.DeleteFunc(n.contexts, func(c *nginxContext) bool { return dropped[c] != nil })
	n.requests = slices.DeleteFunc(n.requests, func(r limitRequest) bool {
		first := dropped[r.context]
		if first != nil {
			n.remark(r.line, "limit_req is not imported: nginx gives its location no request, as location %s on line %d comes before the one around it", limit.Shorten(first.location.path), first.line)
		}
		return first != nil
	})
}

// before returns the location, of those beside an outer one, that nginx takes for all requests of an inner one, or nil.
func (c *nginxContext) before(inner *nginxContext, beside []*nginxContext) *nginxContext {
	i := slices.IndexFunc(beside, func(o *nginxContext) bool {
		if o == c {
			return false
		}
		if o.location.modifier == "=" {
			return inner.location.modifier == "=" && inner.location.path == o.location.path
		}
		return len(o.location.path) > len(c.location.path) && strings.HasPrefix(inner.location.path, o.location.path)
	})
	if i < 0 {
		return nil
	}
	return beside[i]
}
