package limitimport

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

// addedByCheck are dimensions that /check adds to requests.
var addedByCheck = []string{"path", "method"}

// remarkAddedByCheck remarks once on conditions on addedByCheck: other services send these themselves.
func (r *rules) remarkAddedByCheck() {
	var names, sent []string
	first := 0
	for _, name := range addedByCheck {
		has := func(l imported) bool {
			return slices.ContainsFunc(l.when, func(c condition) bool { return c.dimension == name })
		}
		if !slices.ContainsFunc(r.tenant, has) && !slices.ContainsFunc(r.shared, has) {
			continue
		}
		names, sent = append(names, name), append(sent, "DIM "+name)
		if line := r.matchLines[name]; first == 0 || line < first {
			first = line
		}
	}
	if len(names) == 0 {
		return
	}
	are, them := "is a condition on a dimension", "it"
	if len(names) > 1 {
		are, them = "are conditions on dimensions", "them"
	}
	r.remark(first, "%s %s: /check of limitgate serve --http adds %s, and other services send %s", strings.Join(names, " and "), are, them, strings.Join(sent, " and "))
}

// matchOn notes the first line of a match with a dimension.
func (r *rules) matchOn(name string, line int) {
	if r.matchLines[name] == 0 {
		r.matchLines[name] = line
	}
}

// match reads which requests a rule counts that counts by some dimensions.
func (r *rules) match(n *yaml.Node, id string, by []string) (when []condition, ok bool) {
	m := value(n, "match")
	switch {
	case m == nil:
		return nil, true
	case m.Kind == yaml.ScalarNode:
		return r.pattern(m, id)
	case m.Kind != yaml.MappingNode:
		r.remark(m.Line, "%s is not imported: match is neither a text nor fields", id)
		return nil, false
	case repeated(m) != nil:
		r.remark(repeated(m).Line, "%s is not imported: %s of match stands there twice", id, limit.Shorten(repeated(m).Value))
		return nil, false
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		name, of := word(strings.ToLower(m.Content[i].Value)), resolved(m.Content[i+1])
		if of.Kind != yaml.ScalarNode {
			r.remark(of.Line, "%s is not imported: %s of match is no text", id, name)
			return nil, false
		}
		if !r.isPrefix(of, id) {
			return nil, false
		}
		pattern := of.Value
		if name == "method" && limit.IsMethod(pattern) {
			pattern = r.method(of.Line, id, pattern)
		}
		on := condition{name, pattern}
		if name == "ip" && pattern == "*" {
			continue // every address
		}
		if _, isNetwork := on.network(); name == "ip" && !isNetwork {
			r.remark(of.Line, "%s is not imported: ip %s of match is no address and no block of addresses, such as 203.0.113.0/24", id, limit.Shorten(pattern))
			return nil, false
		}
		when = append(when, on)
		switch name {
		case "path", "method":
			r.matchOn(name, m.Line)
		case "op", "tenant", "ip":
		default:
			if slices.Contains(by, name) {
				continue // per has its remark
			}
			r.remark(m.Line, "%s: %s is a condition on a dimension: services send DIM %[2]s, and a request without it is not counted", id, name)
		}
	}
	return when, true
}

// pattern reads a match of METHOD PATH or PATH alone.
func (r *rules) pattern(m *yaml.Node, id string) (when []condition, ok bool) {
	if !r.isPrefix(m, id) {
		return nil, false
	}
	switch text := m.Value; {
	case text == "*" || text == "" || text == "/*":
		return nil, true
	case strings.HasPrefix(text, "/"):
		r.matchOn("path", m.Line)
		return []condition{{"path", text}}, true
	case strings.HasPrefix(text, "* "):
		return r.pattern(&yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(text[2:]), Line: m.Line}, id)
	default:
		text, ok = r.op(m, id)
		return []condition{{"op", text}}, ok
	}
}

// op returns the op of a match with a method and a path, as /check sends it, and reports whether it is
// one.
func (r *rules) op(m *yaml.Node, id string) (op string, ok bool) {
	words, path, found := strings.Cut(m.Value, " /")
	methods := strings.FieldsFunc(words, func(c rune) bool { return c == ' ' || c == ',' || c == '|' })
	switch {
	case !found || len(methods) == 0 || slices.ContainsFunc(methods, func(word string) bool { return !limit.IsMethod(word) }):
		return m.Value, true
	case len(methods) > 1:
		r.remark(m.Line, "%s is not imported: %s has %d methods: write a rule for each", id, limit.Shorten(m.Value), len(methods))
		return "", false
	}
	return r.method(m.Line, id, methods[0]) + " /" + path, true
}

// method returns a method in capitals.
func (r *rules) method(line int, id, method string) string {
	if method == strings.ToUpper(method) {
		return method
	}
	r.remark(line, "%s: the method %s is %s here, in capitals, as /check of limitgate serve --http sends it", id, limit.Shorten(method), limit.Shorten(strings.ToUpper(method)))
	return strings.ToUpper(method)
}

// isPrefix reports whether a pattern is a text with a * at its end at most.
func (r *rules) isPrefix(m *yaml.Node, id string) bool {
	text := strings.TrimPrefix(m.Value, "* ")
	if i := strings.IndexAny(text, "*?[{:"); i >= 0 && (text[i] != '*' || i != len(text)-1) {
		r.remark(m.Line, "%s is not imported: %s has a wildcard before its end", id, limit.Shorten(m.Value))
		return false
	}
	return true
}
