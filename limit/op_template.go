package limit

import "strings"

// paramStyles are how frameworks write a parameter in the template of a route, by its begin and its end:
// {id} of Go's http.ServeMux, FastAPI and Spring, :id of Express and Gin, <id> of Flask, and [id] of Next.js.
var paramStyles = [...]struct{ begin, end string }{{"{", "}"}, {":", ""}, {"<", ">"}, {"[", "]"}}

// paramStyle returns the index of the style of a segment of a path that is a parameter, or -1.
func paramStyle(segment string) int {
	for i, style := range paramStyles {
		if len(segment) > len(style.begin)+len(style.end) && strings.HasPrefix(segment, style.begin) && strings.HasSuffix(segment, style.end) {
			return i
		}
	}
	return -1
}

// differentParam returns the first parameters of two templates that are one route but for the way in which they write
// parameters, or "".
func differentParam(a, b string) (inA, inB string) {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	if len(as) != len(bs) {
		return "", ""
	}
	for i := range as {
		styleA, styleB := paramStyle(as[i]), paramStyle(bs[i])
		switch {
		case as[i] == bs[i]:
		case styleA < 0 || styleB < 0 || styleA == styleB:
			return "", ""
		case inA == "":
			inA, inB = as[i], bs[i]
		}
	}
	return inA, inB
}

// valueOfParam returns the first parameter of a template for which a path of its route has a value, or "". Only what has digits is
// taken for one, and no version: /users/me and /v2 may be routes of their own. IsPrefix reports that the path may go on.
func valueOfParam(path, template string, isPrefix bool) (param string) {
	values, names := strings.Split(path, "/"), strings.Split(template, "/")
	if len(values) < len(names) || len(values) > len(names) && !isPrefix {
		return ""
	}
	for i, name := range names {
		switch value := values[i]; {
		case value == name, isPrefix && i == len(names)-1 && strings.HasPrefix(value, name):
		case paramStyle(name) < 0 || paramStyle(value) >= 0 || !hasNumber(value):
			return ""
		case param == "":
			param = name
		}
	}
	return param
}
