package edge

import (
	"net/netip"
	"regexp"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// operation is a set of requests by their method and path, as the edge sees them: the ops "METHOD /path"
// of a limits file.
type operation struct {
	method, path string
	exact        bool // path is a whole path, not the beginning of paths
}

// maxSearchBytes is the longest text with which WAF compares a part of a request.
const maxSearchBytes = 200

var operationForm = regexp.MustCompile(`^([A-Z]{1,32}) (/[!-~]*)?$`)

// templated matches what routers write for a part of a path that varies.
var templated = regexp.MustCompile(`[{}<>()*?#\\^$|\[\]]|/:`)

// operationOf returns the operation of a condition on op. Ok is false for names of operations, and for
// templates of paths, which say nothing of the path of a request.
func operationOf(c limit.Clause) (op operation, ok bool) {
	m := operationForm.FindStringSubmatch(c.Text)
	if c.Dim != "op" || m == nil || templated.MatchString(m[2]) || len(m[2]) > maxSearchBytes || c.Exact && m[2] == "" {
		return operation{}, false
	}
	return operation{method: m[1], path: m[2], exact: c.Exact}, true
}

func (o operation) String() string {
	if o.exact {
		return o.method + " " + o.path
	}
	return o.method + " " + o.path + "*"
}

// part is how many requests of a scope something concerns.
type part int

const (
	none part = iota
	some
	all
)

// scope is a set of requests of one client.
type scope struct {
	op *operation // nil for all requests
	// net are the addresses of a client of any tenant; without it they are in no block of any limit.
	net netip.Prefix
	// except are limits whose requests the scope leaves out.
	except map[*limit.Limit]bool
	// anyTenant reports that the client is an address and of any tenant, so that it need not meet
	// the limits of a plan. Otherwise the client is a tenant.
	anyTenant bool
}

// part returns how many requests of the scope meet the conditions of a limit.
func (s scope) part(l *limit.Limit) part {
	found := all
	for _, c := range l.Clauses() {
		found = min(found, s.meets(c))
	}
	if found == all && (!l.EnforcedAlways() || s.anyTenant && l.Plan != "") {
		return some
	}
	return found
}

func (s scope) meets(c limit.Clause) part {
	switch {
	case c.Dim == "ip" && !s.anyTenant: // a tenant has any addresses
		return some
	case c.Dim == "ip" && !s.net.IsValid():
		return none
	case c.Dim == "ip" && c.Net.Bits() <= s.net.Bits() && c.Net.Contains(s.net.Addr()):
		return all
	case c.Dim == "ip":
		return none
	case c.Dim == "op" && s.op != nil:
		return s.op.meets(c)
	}
	return some
}

// meets returns how many requests of an operation meet a condition on op.
func (o operation) meets(c limit.Clause) part {
	text := o.method + " " + o.path
	switch {
	case c.Exact && o.exact && c.Text == text:
		return all
	case !c.Exact && strings.HasPrefix(text, c.Text):
		if c.Declared && !o.exact { // ops that are not declared meet no condition
			return some
		}
		return all
	case !o.exact && strings.HasPrefix(c.Text, text):
		return some
	}
	return none
}
