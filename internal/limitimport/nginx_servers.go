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
		if c.name != "location" || c.isAnswered() || strings.HasPrefix(c.location.path, acmePath) {
			continue
		}
		for at := c.outer; at != nil; at = at.outer {
			counts[at] = true
		}
	}
	named := map[string]int{}
	for _, c := range n.contexts {
		if c.name == "server" && !c.returns && c.server.isNamed() {
			named[strings.ToLower(c.server.names[0])]++
		}
	}
	for _, c := range n.contexts {
		if c.name == "server" && !c.returns && c.divided && !counts[c] && c.limits == 0 && c.server.isNamed() && named[strings.ToLower(c.server.names[0])] > 1 {
			c.returns = true
			n.servers--
			n.answering = append(n.answering, answering{c.outer, c.line})
		}
	}
}

// eachUnnamed calls yield with each limit_req of a server without a name, each other server whose requests its limit counts
// here, and a region of these.
func (n *nginx) eachUnnamed(yield func(r *limitRequest, c *nginxContext, region []condition)) {
	for i := range n.requests {
		r := &n.requests[i]
		if !r.imported || r.server == nil || n.servers < 2 || r.server.isNamed() {
			continue
		}
		for _, c := range n.contexts {
			if c.name != "server" || c.returns || c.server == r.server {
				continue
			}
			if region := append(n.region(c), r.limit.when...); n.counts(&r.limit, region) {
				yield(r, c, region)
			}
		}
	}
}

// lostAt returns the lines of the limit_req of a server that do not count some requests of a region here, as the limit of r, of
// another server, or one that lifts them does in their place.
func (n *nginx) lostAt(r *limitRequest, c *nginxContext, byContext map[*nginxContext][]*limitRequest) (lines []int) {
	for _, in := range n.contexts {
		if in.server == c.server && r.limit.meets(n.region(in)) {
			lines = append(lines, n.lostTo(r, append(n.region(in), r.limit.when...), byContext[in.limiting()])...)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// remarkUnnamed remarks on limit_req of servers without a name whose limits count requests of other servers here.
func (n *nginx) remarkUnnamed() {
	byContext := n.byContext()
	var unnamed []*limitRequest
	hosts, lost := map[*limitRequest][]string{}, map[*limitRequest][]int{}
	n.eachUnnamed(func(r *limitRequest, c *nginxContext, _ []condition) {
		if hosts[r] == nil {
			unnamed = append(unnamed, r)
		}
		name := fmt.Sprintf("the server on line %d", c.line)
		if c.server.isNamed() {
			name = limit.Shorten(c.server.names[0])
		}
		hosts[r], lost[r] = append(hosts[r], name), append(lost[r], n.lostAt(r, c, byContext)...)
	})
	for _, r := range unnamed {
		how := "too"
		if lines := lost[r]; len(lines) > 0 {
			slices.Sort(lines) // of several servers
			how = "in place of that on " + listOfLines(lines)
		}
		n.remark(r.line, "its server has the hosts that no other server names; here the limit counts requests of %s %s: to count those of its server alone, give that a name, such as server_name other.invalid, import again, and services send DIM %s \"other.invalid\" for these hosts", named(slices.Compact(hosts[r])), how, n.serverDimension())
	}
}
