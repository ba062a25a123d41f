package replay

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/internal/accesslog"
	"github.com/limitgate/limitgate/limit"
)

// noWord is what a template makes of a line that has none of its fields.
const noWord = "-"

// DefaultTenant is the tenant of all requests for which limits are suggested, unless a template is given.
const DefaultTenant = "web"

// manyLack is the part of the lines, as a divisor, from which on a warning says that they lack the tenant: a log
// of a site with a login has some lines without a user.
const manyLack = 50

// lacking counts the lines that have no value for a template.
type lacking struct {
	requests, tenant, op, ip int64
	user, query              int64 // lines without a user, or without a query, whatever the templates
	dims                     map[string]int64
	addr                     netip.Addr // of the first request that has one
	others                   bool       // requests have others
	// routes has the ops of each route that are paths of it, ops many in all.
	routes map[string]map[string]bool
	ops    int
	warned bool // of a route
}

const (
	// mostOps bounds the ops that are remembered.
	mostOps = 4096
	// manyOps is the number of ops of one route from which on a warning says so, as in a proxy.
	manyOps = 64
)

// addOp remembers an op that is a path of a route.
func (l *lacking) addOp(op string) {
	route := limit.RouteOf(op)
	if route == op || l.ops == mostOps || l.routes[route][op] {
		return
	}
	if l.routes == nil {
		l.routes = map[string]map[string]bool{}
	}
	if l.routes[route] == nil {
		l.routes[route] = map[string]bool{}
	}
	l.routes[route][op] = true
	l.ops++
}

// warnOfPaths calls opts.Warn for the route that most ops are paths of, if a limit of the set counts by op. Without a set
// there may be such limits.
func (l *lacking) warnOfPaths(set *limit.Set, opts *Options) {
	most := ""
	for _, route := range slices.Sorted(maps.Keys(l.routes)) {
		if len(l.routes[route]) > len(l.routes[most]) {
			most = route
		}
	}
	n := len(l.routes[most])
	if opts.Warn == nil || n < manyOps || l.warned || set != nil && !countsOpOf(set, l.routes[most]) {
		return
	}
	l.warned = true
	atLeast := ""
	if l.ops == mostOps {
		atLeast = "at least "
	}
	template := "{route}"
	if strings.Contains(opts.Op.String(), "{method}") {
		template = "{method} {route}"
	}
	opts.Warn(fmt.Sprintf("%s%d ops are paths of one route, %s, and limits by op count each apart: --op '%s' makes one op of them", atLeast, n, most, template))
}

// countsOpOf reports whether a limit counts by op that may apply to one of ops.
func countsOpOf(set *limit.Set, ops map[string]bool) bool {
	limits := set.All()
	for op := range ops {
		if slices.ContainsFunc(limits, func(l *limit.Limit) bool { return l.MayCountOp(op) }) {
			return true
		}
	}
	return false
}

// fewRequests is the number of requests up to which one address for all is no sign of a mistake.
const fewRequests = 20

// addAddr remembers the address of a request.
func (l *lacking) addAddr(addr netip.Addr) {
	if !l.addr.IsValid() {
		l.addr = addr
	}
	l.others = l.others || addr != l.addr
}

// ofProxy reports whether all requests have one address, which no client in the internet has.
func (l *lacking) ofProxy() bool {
	return l.requests > fewRequests && !l.others && (l.addr.IsPrivate() || l.addr.IsLoopback())
}

// addDim counts a line without a value for a dimension.
func (l *lacking) addDim(name string) {
	if l.dims == nil {
		l.dims = map[string]int64{}
	}
	l.dims[name]++
}

// warn calls opts.Warn for templates that name what the log lacks.
func (l *lacking) warn(opts *Options) {
	if opts.Warn == nil || l.requests == 0 {
		return
	}
	switch tenant := opts.Tenant.String(); {
	case tenant == noWord:
	case l.tenant == l.requests:
		opts.Warn(fmt.Sprintf("no line of the log has a value for --tenant %s: all requests are of one tenant, -", tenant))
	case l.tenant > 0 && l.tenant >= l.requests/manyLack:
		opts.Warn(fmt.Sprintf("%d of %d lines have no value for --tenant %s: they are of one tenant, -", l.tenant, l.requests, tenant))
	}
	if tenant := opts.Tenant; !tenant.HasField() && tenant.String() != noWord && tenant.String() != DefaultTenant {
		opts.Warn(fmt.Sprintf("--tenant %s has no field of the log: all requests are of that tenant; a field stands in braces, such as {user}", tenant))
	}
	if !opts.Op.HasField() {
		opts.Warn(fmt.Sprintf("--op %s has no field of the log: all requests have that op; a field stands in braces, such as {method} {path}", opts.Op))
	}
	if l.ofProxy() {
		opts.Warn("all requests have one address of a private network: the log may have that of a proxy in front, and limits by ip count all clients as one then; nginx takes that of the client by real_ip_header")
	}
	for _, name := range slices.Sorted(maps.Keys(l.dims)) {
		if l.dims[name] == l.requests {
			opts.Warn(fmt.Sprintf("no line of the log has a value for --dim %s=%s: no request has that dimension", name, opts.Dims[name]))
		}
	}
}

// unmet returns a warning for each dimension that limits of a set need and no request has, of those of the plans of requests:
// no request meets these limits, or all share a bucket of them. warn reports one that a template names.
func (l *lacking) unmet(set *limit.Set, plans map[string]bool, opts *Options) (warnings []string) {
	needed := map[string][]string{} // the limits, by dimension
	var names, shared []string
	need := func(name string, by *limit.Limit) {
		if l.has(name, opts) || slices.Contains(needed[name], by.ID) {
			return
		}
		if needed[name] == nil {
			names = append(names, name)
		}
		needed[name] = append(needed[name], by.ID)
	}
	for _, of := range set.All() {
		if of.Mode == limit.ModeOff || of.Plan != "" && !plans[of.Plan] {
			continue
		}
		for _, clause := range of.Clauses() {
			need(clause.Dim, of)
		}
		for _, name := range of.Level() {
			if of.Missing == limit.MissingShare {
				shared = l.addShared(shared, name, opts)
				continue
			}
			need(name, of)
		}
	}
	for _, name := range names {
		if first, _, _ := strings.Cut(name, "|"); opts.Dims[first] == nil {
			warnings = append(warnings, fmt.Sprintf("no request has %s, which %s: %s", name, needs(needed[name]), l.howToHave(first)))
		}
	}
	for _, name := range shared {
		if first, _, _ := strings.Cut(name, "|"); opts.Dims[first] == nil && needed[name] == nil {
			warnings = append(warnings, fmt.Sprintf("no request has %s, so that requests share the bucket of those without it: %s", name, l.howToHave(first)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(opts.Dims)) {
		if !slices.Contains(set.Dims(), name) {
			warnings = append(warnings, fmt.Sprintf("no limit uses the dimension %s of --dim%s", name, limit.DidYouMean(name, set.Dims())))
		}
	}
	return warnings
}

// addShared adds a dimension that limits with missing: share count by, if no request has it.
func (l *lacking) addShared(names []string, name string, opts *Options) []string {
	if l.has(name, opts) || slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// has reports whether a request has a dimension, or one of a chain.
func (l *lacking) has(name string, opts *Options) bool {
	for choice := range strings.SplitSeq(name, "|") {
		var without int64
		switch choice {
		case "tenant":
		case "op":
			without = l.op
		case "ip":
			without = l.ip
		default:
			if opts.Dims[choice] == nil {
				continue
			}
			without = l.dims[choice]
		}
		if without < l.requests {
			return true
		}
	}
	return false
}

// tenantFields returns fields of the log that may have tenants, for advice.
func (l *lacking) tenantFields() string {
	switch user, query := l.user < l.requests, l.query < l.requests; {
	case user && query:
		return "{user} or {query:key}"
	case user:
		return "{user}"
	case query:
		return "{query:key}"
	}
	return "{host}, the address, as its lines have no users and no queries"
}

// needs returns the end of a warning with the limits that need a dimension.
func needs(ids []string) string {
	switch len(ids) {
	case 1:
		return "limit " + ids[0] + " needs"
	case 2:
		return "limits " + ids[0] + " and " + ids[1] + " need"
	}
	return fmt.Sprintf("limits %s and %d more need", ids[0], len(ids)-1)
}

// howToHave returns the flag by which requests have a dimension.
func (l *lacking) howToHave(name string) string {
	switch {
	case name == "user" && l.user == l.requests:
		return "the lines of the log have no user; --dim user=TEMPLATE takes it from another field, such as {query:user}"
	case name == "op":
		return "--op TEMPLATE"
	case name == "ip":
		return "the lines of the log have no addresses"
	}
	if field := "{" + name + "}"; isField(field) {
		return "--dim " + name + "=" + field
	}
	return "--dim " + name + "=TEMPLATE"
}

// isField reports whether a template is a field of the log.
func isField(template string) bool {
	_, err := accesslog.ParseTemplate(template)
	return err == nil
}
