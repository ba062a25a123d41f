package limitimport

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/config"
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

// meantName returns the name that every request has, or that /check adds, of which another one may be a misspelling, or "".
func meantName(name string) string {
	for _, known := range []string{"path", "method", "tenant"} {
		if limit.IsSlip(name, known) {
			return known
		}
	}
	return ""
}

// match reads which requests a rule counts that counts by some dimensions.
func (r *rules) match(n *yaml.Node, id string, by []string) (when []condition, ok bool) {
	m := value(n, "match")
	switch {
	case m == nil || m.Tag == nullTag:
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
		if of.Tag == nullTag {
			continue // no condition
		}
		if of.Kind != yaml.ScalarNode {
			r.remark(of.Line, "%s is not imported: %s of match is no text", id, name)
			return nil, false
		}
		if !r.isPrefix(of, id, name == "op") {
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
			r.remark(m.Line, "%s: %s is a condition on a dimension: services send DIM %[2]s, and a request without it is not counted%s", id, name, question(meantName(name)))
		}
	}
	return when, true
}

// pattern reads a match of METHOD PATH or PATH alone.
func (r *rules) pattern(m *yaml.Node, id string) (when []condition, ok bool) {
	if path := strings.TrimPrefix(m.Value, "* "); !r.isPrefix(m, id, !strings.HasPrefix(path, "/")) {
		return nil, false
	}
	switch text := m.Value; {
	case text == "*" || text == "" || text == "/*":
		return nil, true
	case methodBehind.MatchString(text):
		path, method, _ := strings.Cut(text, " ")
		r.remark(m.Line, "%s is not imported: the method of %s stands in front: write %s", id, limit.Shorten(text), limit.Shorten(method+" "+path))
		return nil, false
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

var (
	// methodBehind matches a path with a method behind it.
	methodBehind = regexp.MustCompile(`^/\S* (?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)$`)
	// methodColon matches a method, a colon and a path.
	methodColon = regexp.MustCompile(`^([A-Z]+): ?(/.*)$`)
	// noRoute matches a text that has a slash, and neither a method nor the slash of a path.
	noRoute = regexp.MustCompile(`^[^\s/]+/`)
)

// op returns the op of a match with a method and a path, as /check sends it, and reports whether it is
// one.
func (r *rules) op(m *yaml.Node, id string) (op string, ok bool) {
	words, path, found := strings.Cut(m.Value, " /")
	methods := strings.FieldsFunc(words, func(c rune) bool { return c == ' ' || c == ',' || c == '|' })
	switch {
	case noRoute.MatchString(m.Value) && !limit.IsMethod(noRoute.FindString(m.Value)[:strings.Index(m.Value, "/")]):
		r.note(m.Line, "%s: %s is an op without a method and a path that begins with a slash: /check of limitgate serve --http sends none such", id, limit.Shorten(m.Value))
		return m.Value, true
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

// parameter matches a parameter of a route in a limits file.
var parameter = regexp.MustCompile(`\{[\w.-]{1,64}\}`)

// urlPath matches a URL, perhaps behind a method, and its path.
var urlPath = regexp.MustCompile(`^(?:\S+ )?[a-z]+://[^/?]*([^?]*)`)

// isPrefix reports whether a pattern is a text with a * at its end at most. An op may be the template of a route.
func (r *rules) isPrefix(m *yaml.Node, id string, isOp bool) bool {
	text, cure := strings.TrimPrefix(m.Value, "* "), "write what stands before it, and one * at the end"
	if url := urlPath.FindStringSubmatch(text); url != nil {
		r.remark(m.Line, "%s is not imported: %s is a URL: write its path, %s", id, limit.Shorten(m.Value), limit.Shorten(cmp.Or(url[1], "/")))
		return false
	}
	if path, _, found := strings.Cut(text, "?"); found && strings.Contains(path, "/") && strings.Contains(text, "=") {
		r.remark(m.Line, "%s is not imported: %s has a query, without which paths are compared: write %s", id, limit.Shorten(m.Value), limit.Shorten(path))
		return false
	}
	if of := methodColon.FindStringSubmatch(text); of != nil && limit.IsMethod(of[1]) {
		r.remark(m.Line, "%s is not imported: a blank stands behind the method: write %s", id, limit.Shorten(of[1]+" "+of[2]))
		return false
	}
	if isOp {
		plain := parameter.ReplaceAllString(text, "")
		if plain != text {
			r.note(m.Line, "%s: the op is a template, which services send as it is; /check of limitgate serve --http sends the path of a request", id)
		}
		text, cure = plain, cure+", or a template with its parameters in braces, such as GET /users/{id}"
	}
	if i := strings.IndexAny(text, "*?[{:"); i >= 0 && (text[i] != '*' || i != len(text)-1) {
		r.remark(m.Line, "%s is not imported: %s has a wildcard or a parameter before its end: %s", id, limit.Shorten(m.Value), cure)
		return false
	}
	return true
}

// remarkConditions returns what is said of the conditions of a limits file, at the lines of the rules.
func (r *rules) remarkConditions(file []byte) (remarks []Remark) {
	set, warnings, err := config.ParseLimits("", file, limit.CompileOptions{IPMaxTTL: math.MaxInt64})
	if err != nil {
		return nil
	}
	ids := map[int]string{}
	for _, l := range set.All() {
		ids[l.Line] = l.ID
	}
	for _, w := range warnings {
		if id := ids[w.Line]; strings.HasPrefix(w.Field, "when.") && (!w.Note || w.Field == "when.op") && r.lines[id] > 0 {
			remarks = append(remarks, Remark{Line: r.lines[id], Text: id + ": " + w.Text})
		}
	}
	return remarks
}
