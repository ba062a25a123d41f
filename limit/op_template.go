package limit

import "strings"

// paramStyles are how frameworks write a parameter in the template of a route, by its begin and its end:
// {id} of Go's http.ServeMux, FastAPI and Spring, :id of Express and Gin, <id> of Flask, and [id] of Next.js.
var paramStyles = [...]struct{ begin, end string }{{"{", "}"}, {":", ""}, {"<", ">"}, {"[", "]"}}

// paramBegins are the first bytes of parameters.
const paramBegins = "{:<["

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
// parameters, or their names, or "".
func differentParam(a, b string) (inA, inB string) {
	if strings.Count(a, "/") != strings.Count(b, "/") { // before memory is taken for the path of a client
		return "", ""
	}
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	for i := range as {
		styleA, styleB := paramStyle(as[i]), paramStyle(bs[i])
		switch {
		case as[i] == bs[i]:
		case styleA < 0 || styleB < 0:
			return "", ""
		case inA == "":
			inA, inB = as[i], bs[i]
		}
	}
	return inA, inB
}

// valueOfParam returns the first parameter of a template for which a path of its route has a value, or "". IsPrefix reports that the path
// may go on. It takes as long as the template goes along with the path, without memory: the path is of a client.
func valueOfParam(path, template string, isPrefix bool) (param string) {
	for {
		value, restOfPath, pathGoesOn := strings.Cut(path, "/")
		name, rest, goesOn := strings.Cut(template, "/")
		switch {
		case value == name, isPrefix && !goesOn && strings.HasPrefix(value, name):
		case paramStyle(name) < 0 || paramStyle(value) >= 0 || !isValue(value):
			return ""
		case param == "":
			param = name
		}
		switch {
		case !goesOn && pathGoesOn && !isPrefix, goesOn && !pathGoesOn:
			return ""
		case !goesOn:
			return param
		}
		path, template = restOfPath, rest
	}
}

// isValue reports whether a segment of a path is most likely the value of a parameter: a number, or a longer text of which a
// third is digits. users/me, v2, oauth2 and s3 may be names of routes.
func isValue(segment string) bool {
	digits := 0
	for i := range len(segment) {
		if segment[i] >= '0' && segment[i] <= '9' {
			digits++
		}
	}
	return digits > 0 && (digits == len(segment) || len(segment) >= 6 && 3*digits >= len(segment))
}
