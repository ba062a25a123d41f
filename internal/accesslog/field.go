package accesslog

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// maxSegments is the largest N of {path:N} and {route:N}.
const maxSegments = 64

// argument is the text after the colon of a template's field.
type argument struct {
	text  string
	count int // 0 when there is none.
}

// fieldArg is the kind of argument of a field.
type fieldArg int

const (
	nothing fieldArg = iota
	optionalCount
	word
)

// fields are the fields of templates, in the order errors list them.
var fields = []struct {
	name   string
	wants  fieldArg
	expand func(e *Entry, arg argument) string
}{
	{"method", nothing, func(e *Entry, _ argument) string { return e.Method }},
	{"path", optionalCount, expandPath},
	{"route", optionalCount, expandRoute},
	{"query", word, func(e *Entry, arg argument) string { return queryValue(e.Target, arg.text) }},
	{"status", nothing, func(e *Entry, _ argument) string { return strconv.FormatInt(e.Status, 10) }},
	{"user", nothing, func(e *Entry, _ argument) string { return e.User }},
	{"host", nothing, func(e *Entry, _ argument) string { return e.RemoteAddr }},
	{"referer_host", nothing, func(e *Entry, _ argument) string { return hostOfURL(e.Referer) }},
	{"ua_family", nothing, func(e *Entry, _ argument) string { return agentFamily(e.UserAgent) }},
}

// fieldNames lists the fields for an error.
func fieldNames() string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = "{" + f.name + [...]string{nothing: "", optionalCount: "[:N]", word: ":NAME"}[f.wants] + "}"
	}
	return strings.Join(names, ", ")
}

func expandPath(e *Entry, arg argument) string {
	path := pathOf(e.Target)
	if arg.count == 0 {
		return path
	}
	return firstSegments(path, arg.count)
}

// expandRoute is the route of the path. RouteOf takes a path of two segments with a dot for a method of gRPC, which has none
// in the second one: the method in front shows that it is another.
func expandRoute(e *Entry, arg argument) string {
	const method = "GET "
	path := firstSegments(pathOf(e.Target), cmp.Or(arg.count, maxSegments))
	if file := path[strings.LastIndexByte(path, '/')+1:]; !strings.Contains(file, ".") {
		return limit.RouteOf(path)
	}
	return strings.TrimPrefix(limit.RouteOf(method+path), method)
}

// queryValue is the decoded value of the first parameter of that name in the
// query string of target, or "". A value that does not decode is returned as it
// is.
func queryValue(target, name string) string {
	target, _, _ = strings.Cut(target, "#")
	_, query, _ := strings.Cut(target, "?")
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		key, value, _ := strings.Cut(pair, "=")
		if key == name || decodeQuery(key) == name {
			return decodeQuery(value)
		}
	}
	return ""
}

// decodeQuery decodes s, or returns it as it is if it is not well encoded.
func decodeQuery(s string) string {
	if decoded, err := url.QueryUnescape(s); err == nil {
		return decoded
	}
	return s
}
