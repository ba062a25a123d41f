package limitimport

import (
	"fmt"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// key sets what the limit of a limit_req counts by, and reports whether a limits file can express it.
func (n *nginx) key(r *limitRequest, z *zone) bool {
	variables, literal, ok := splitKey(z.key)
	if !ok {
		r.leaveOut("key %s of its zone has a $ without a name", limit.Shorten(z.key))
		return false
	}
	if len(variables) == 1 && !literal && n.maps[variables[0]].addresses() {
		n.mappedKey(r, variables[0])
		return true
	}
	if near := nearest(z.key, filledVariables); len(variables) == 0 && near != "" {
		r.remark("key %s of its zone has no variable, so that all requests share one bucket, as in nginx%s", limit.Shorten(z.key), question("$"+near))
	}
	l := &r.limit
	l.by = []string{}
	filled, named := literal, 0
	var sent []string
	for _, name := range variables {
		if meant := n.meantVariable(name); meant != "" {
			r.remark("no map, geo or set has $%s of the key of its zone%s", limit.Shorten(name), question("$"+meant))
		}
		dimension := n.dimension(name)
		if slices.Contains(l.by, dimension) {
			continue
		}
		l.by = append(l.by, dimension)
		if dimension != "ip" {
			named++
			sent = append(sent, name)
		}
		filled = filled || n.isFilled(name)
	}
	if named > 0 && (literal || len(l.by) > 1) {
		l.missing = "share"
	}
	for _, name := range sent {
		n.keyed = append(n.keyed, keyed{r, n.dimension(name), fmt.Sprintf("services send DIM %s with what nginx has in $%s, or a hash of it beyond 256 bytes; %s", n.dimension(name), limit.Shorten(name), withoutDim(l.missing == "share", n.isFilled(name)))})
	}
	if l.missing == "share" && !filled {
		r.remark("nginx counts no request for which key %s is empty; here these requests share a bucket: where that matters, add counted: \"1\" to the when of the limit, and services send DIM counted 1 with all others", limit.Shorten(z.key))
	}
	return true
}

// keyed is a dimension that the limit of a limit_req counts by, with what services send.
type keyed struct {
	request         *limitRequest
	dimension, text string
}

// remarkKeys says what services send for keys, but for dimensions that limits have conditions on: remarkConditions says that.
func (n *nginx) remarkKeys(conditions map[string]int) {
	for _, k := range n.keyed {
		if conditions[k.dimension] == 0 && k.request.imported {
			k.request.remarkOnce("%s", k.text)
		}
	}
}

// countsBy reports whether an imported limit counts by a dimension that services send for a key.
func (n *nginx) countsBy(dimension string) bool {
	return slices.ContainsFunc(n.keyed, func(k keyed) bool { return k.request.imported && k.dimension == dimension })
}

// withoutDim says how a request counts that lacks a dimension of a key.
func withoutDim(shared, filled bool) string {
	switch {
	case shared && filled:
		return "a request without it counts as one with an empty value"
	case shared:
		return "a request without it counts as one with an empty value, as in nginx"
	case filled:
		return "a request without it is not counted"
	}
	return "a request without it is not counted, as nginx counts none whose key is empty"
}

// splitKey returns the variables of a key, and reports whether it has other text, and whether it can be read.
func splitKey(key string) (variables []string, literal, ok bool) {
	for key != "" {
		at := strings.IndexByte(key, '$')
		if at < 0 {
			return variables, true, true
		}
		literal = literal || at > 0
		name, rest, ok := nginxVariable(key[at:])
		if !ok {
			return nil, literal, false
		}
		variables, key = append(variables, name), rest
	}
	return variables, literal, true
}

// dimension returns the dimension for a variable: one of its own, unless it has what another dimension stands for.
func (n *nginx) dimension(name string) string {
	switch {
	case isAddress(name):
		return "ip"
	case name == "uri", name == "document_uri":
		return "path"
	case name == "host", name == "server_name":
		return name
	case n.dimensions[name] == "":
		n.dimensions[name] = n.newDimension(name)
	}
	n.noteVariable(n.dimensions[name], name, map[string]bool{})
	return n.dimensions[name]
}

// noteVariable notes of which headers a dimension has values: that of a variable, or those that its map reads and writes.
// Variables that were seen are left out.
func (n *nginx) noteVariable(dimension, name string, seen map[string]bool) {
	if seen[name] {
		return
	}
	seen[name] = true
	m := n.maps[name]
	if slices.Contains(queryVariables, name) {
		n.hash(dimension)
	}
	if m == nil {
		if len(seen) > 1 || isRequestField(name) { // a map reads it, or it is a header
			n.noteHeader(dimension, name)
		}
		return
	}
	n.noteVariable(dimension, m.source, seen)
	for _, e := range m.entries {
		of, _, _ := splitKey(e.value)
		for _, variable := range of {
			n.noteVariable(dimension, variable, seen)
		}
	}
}

// queryVariables are variables with the query of a request, which may have secrets.
var queryVariables = []string{"request_uri", "args", "query_string", "request"}

// newDimension returns a dimension that is not used yet, by the name of a field of the request if a variable is one.
// $http_ip is not the address of the client, nor $http_host the host: that one is in small letters and has no port.
func (n *nginx) newDimension(name string) string {
	field := name
	switch {
	case name == "remote_user":
		field = "user"
	case isRequestField(name):
		_, field, _ = strings.Cut(name, "_")
	}
	field = word(field)
	if limit.ReservedDim(field) || n.taken[field] > 0 {
		field = word(name)
	}
	if limit.ReservedDim(field) {
		field = "nginx-" + field
	}
	return n.taken.unique(field)
}

// isRequestField reports whether a variable is a header, an argument or a cookie.
func isRequestField(name string) bool {
	return strings.HasPrefix(name, "http_") || strings.HasPrefix(name, "arg_") || strings.HasPrefix(name, "cookie_")
}

// filledVariables are variables that no request has empty.
var filledVariables = []string{"binary_remote_addr", "remote_addr", "uri", "document_uri", "request_uri", "host", "request_method", "scheme", "server_addr", "server_port"}

// isFilled reports whether no request has a variable empty: nginx always has a value for it, or a map of it has.
func (n *nginx) isFilled(name string) bool {
	m := n.maps[name]
	if m == nil {
		return slices.Contains(filledVariables, name)
	}
	return m.has("default") && !slices.ContainsFunc(m.entries, func(e mapEntry) bool {
		of, rest, ok := nginxVariable(e.value)
		return e.value == "" || ok && rest == "" && !slices.Contains(filledVariables, of) && (of != m.source || !m.has(""))
	})
}

// isAddress reports whether a variable is the address of the client.
func isAddress(variable string) bool {
	return variable == "binary_remote_addr" || variable == "remote_addr"
}

// mappedKey sets a key that a map makes of the address of the client, and leaves empty for some requests.
func (n *nginx) mappedKey(r *limitRequest, name string) {
	m, l := n.maps[name], &r.limit
	usual := m.value("default")
	if of := n.maps[m.source]; of != nil {
		usual = m.value(of.value("default"))
	}
	switch method := m.method(); {
	case usual != "":
		l.by, r.exempting, r.variable = []string{"ip"}, m, name
	case method != "":
		l.by, l.when, l.id = []string{"ip"}, []condition{{"op", method + " *"}}, l.id+"-"+method
		l.group = "method-" + method // it takes the place of none that count other requests of its paths too
		r.remark("$%s is the address of the client for the method %s alone, by the map on line %d: the limit is one of ops that begin with %[2]s, such as \"%[2]s /login\"", limit.Shorten(name), method, m.line)
	default:
		dimension := n.dimension(name)
		l.by = []string{dimension}
		n.hash(dimension)
		r.remarkOnce("services send DIM %s with what nginx has in $%s, which the map on line %d leaves empty for some requests; a request without it is not counted, as in nginx", dimension, limit.Shorten(name), m.line)
	}
}

// method returns the only method for which a map has a value, or "". A map does not regard the case of its keys.
func (m *nginxMap) method() string {
	method := ""
	for _, e := range m.entries {
		switch {
		case e.value == "":
		case m.source != "request_method" || method != "" || word(e.key) != e.key || e.key == "default":
			return ""
		default:
			method = strings.ToUpper(e.key)
		}
	}
	return method
}
