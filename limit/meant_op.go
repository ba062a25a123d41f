package limit

import (
	"cmp"
	"strings"
)

// OpAdvice says how an op is spelled in a request, after the op that was sent and the one that was meant.
const OpAdvice = "send a method in capitals, a blank and the template of the route, without the query"

// OpUse is the use that a limit makes of the op of a request.
type OpUse struct {
	Pattern string // of the condition on the op, as in a limits file: "POST /v1/payments*"; "" without one
	Counts  bool   // by op
}

// OpUse returns the use that l makes of the op, which is none for the zero OpUse.
func (l *Limit) OpUse() OpUse {
	var use OpUse
	for i := range l.when {
		if l.when[i].kind == propertyOp {
			use.Pattern = l.when[i].text
		}
	}
	for _, d := range l.by {
		for _, c := range d.choices {
			use.Counts = use.Counts || c.name == "op"
		}
	}
	return use
}

// MeantOp returns the op that a request with another spelling of it means most likely, or "". That is one for which
// a condition holds that does not hold for op, or, if a limit counts by op, op as gateways write it. Spellings
// differ in capitals, in blanks, in a query, in a slash at the end, and in a method that one of them lacks.
func MeantOp(op string, uses []OpUse) string {
	if op == "" {
		return ""
	}
	meant, counted := "", false
	for _, use := range uses {
		text, isPrefix := strings.CutSuffix(use.Pattern, "*")
		switch {
		case use.Pattern == "", isPrefix && strings.HasPrefix(op, text):
			counted = counted || use.Counts
		case text == op:
			return "" // one that the file spells so
		case meant == "":
			meant = otherSpelling(op, text, isPrefix)
		}
	}
	if usual := usualOp(op); counted && usual != op && startsWithMethod(op) {
		meant = cmp.Or(meant, usual)
	}
	return meant
}

// otherSpelling returns the op with which text, or a text that it begins, is spelled as in a condition, or "".
func otherSpelling(op, text string, isPrefix bool) string {
	method, path := splitOp(strings.TrimSpace(op))
	wantMethod, wantPath := splitOp(text)
	if method != wantMethod && method != "" && wantMethod != "" {
		return ""
	}
	switch {
	case !isPrefix && strings.EqualFold(strings.TrimRight(path, "/"), strings.TrimRight(wantPath, "/")):
		return text
	case isPrefix && (wantPath != "" || method != "") && len(path) >= len(wantPath) && strings.EqualFold(path[:len(wantPath)], wantPath):
		return text + path[len(wantPath):]
	}
	return ""
}

// splitOp returns the method of an op in capitals, or "", and its path without the query. An op that is no route is
// a path.
func splitOp(op string) (method, path string) {
	path = op
	if startsWithMethod(path) {
		end := strings.IndexAny(path, opSeparators)
		method, path = strings.ToUpper(path[:end]), strings.TrimLeft(path[end:], " \t:")
	}
	if _, host, isURL := strings.Cut(path, "://"); isURL {
		path = host[max(0, strings.IndexByte(host, '/')):]
	}
	if method != "" && path != "" && path[0] != '/' {
		path = "/" + path
	}
	if strings.HasPrefix(path, "/") {
		path, _, _ = strings.Cut(path, "?")
	}
	return method, path
}

// opSeparators end the method of an op.
const opSeparators = " \t:/"

// startsWithMethod reports whether an op begins with a method of HTTP, in capitals or not.
func startsWithMethod(op string) bool {
	end := strings.IndexAny(op, opSeparators)
	return end > 0 && IsMethod(op[:end])
}
