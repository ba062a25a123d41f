package limit

import (
	"cmp"
	"slices"
	"strings"
)

// OpUse is the use that a limit makes of the op of a request.
type OpUse struct {
	Pattern string // of the condition on the op, as in a limits file: "POST /v1/payments*"; "" without one
	Counts  bool   // by op
}

// Holds reports whether the condition on the op holds for one.
func (u OpUse) Holds(op string) bool {
	text, isPrefix := strings.CutSuffix(u.Pattern, "*")
	return op == u.Pattern || isPrefix && strings.HasPrefix(op, text)
}

// CountsOp reports whether l counts by op. A limit of mode off does not.
func (l *Limit) CountsOp() bool {
	return l.Mode != ModeOff && l.Action == ActionLimit && slices.ContainsFunc(l.by, func(d dimension) bool { return d.text == "op" })
}

// MayCountOp reports whether l counts by op, and may apply to requests with this one.
func (l *Limit) MayCountOp(op string) bool {
	if !l.CountsOp() {
		return false
	}
	for i := range l.when {
		if w := &l.when[i]; w.kind == propertyOp && (w.exact && op != w.prefix || !strings.HasPrefix(op, w.prefix)) {
			return false
		}
	}
	return true
}

// OpUse returns the use that l makes of the op, which is none for the zero OpUse and for a limit of mode off.
func (l *Limit) OpUse() OpUse {
	var use OpUse
	if l.Mode == ModeOff {
		return use
	}
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

// OpSpelling is how the op of a request differs from the op that it most likely means.
type OpSpelling struct {
	Meant string // the op that is meant
	// Condition is the pattern that holds for Meant and not for the op, or "" if limits count by op.
	Condition string
	Reason    string // the difference, in words
}

// SpellingOf returns how an op differs from another spelling of it that limits take for another op. Found is false
// if it does not differ, or if the file has a condition that holds for it.
func SpellingOf(op string, uses []OpUse) (s OpSpelling, found bool) {
	sent := parseOp(op)
	if op == "" || sent.method == "" && grpcMethod.MatchString(op) {
		return s, false
	}
	if slices.ContainsFunc(uses, func(use OpUse) bool { return use.Pattern == op }) {
		return s, false
	}
	if s, found = sent.instanceOf(uses); found {
		return s, true
	}
	counted, held, decided, byQuery := false, false, false, false
	for _, use := range uses {
		text, isPrefix := strings.CutSuffix(use.Pattern, "*")
		switch holds := isPrefix && strings.HasPrefix(op, text); {
		case holds && !isCatchAll(text):
			decided, byQuery = true, byQuery || use.Counts && sent.hasQuery && sent.method != "" && !strings.Contains(text, "?")
		case holds, use.Pattern == "":
			held, counted = held || holds, counted || use.Counts
		}
	}
	if decided {
		if byQuery { // a bucket for each
			route, _, _ := strings.Cut(op, "?")
			return OpSpelling{Meant: route, Reason: "it has a query"}, true
		}
		return s, false
	}
	for _, prefixes := range [...]bool{false, true} { // a whole op before the beginning of ops
		for _, use := range uses {
			if use.Pattern != "" && strings.HasSuffix(use.Pattern, "*") == prefixes && sent.means(use.Pattern, held, &s) {
				return s, true
			}
		}
	}
	if usual := usualOp(op); counted && sent.method != "" && usual != op && usual != "" {
		return OpSpelling{Meant: usual, Reason: sent.differenceFrom(parseOp(usual))}, true
	}
	return s, false
}

// instanceOf returns the template of a condition of which an op is the path of a request, also where a shorter beginning of ops is a
// condition that holds for it.
func (p parsedOp) instanceOf(uses []OpUse) (s OpSpelling, found bool) {
	longest := 0 // of the beginnings that hold
	for _, use := range uses {
		if text, isPrefix := strings.CutSuffix(use.Pattern, "*"); isPrefix && strings.HasPrefix(p.op, text) {
			longest = max(longest, len(text))
		}
	}
	for _, use := range uses {
		if begin := strings.IndexAny(use.Pattern, paramBegins); begin < max(longest, 1) { // it has no parameter, or a longer beginning holds
			continue
		}
		text, isPrefix := strings.CutSuffix(use.Pattern, "*")
		want := parseOp(text)
		if p.method != want.method {
			continue
		}
		if param := valueOfParam(p.path, want.path, isPrefix); param != "" {
			return OpSpelling{Meant: text, Condition: use.Pattern, Reason: "it has a value in place of " + Shorten(param) + ": send the template of the route"}, true
		}
	}
	return s, false
}

// isCatchAll reports whether the beginning of ops says no more than their method.
func isCatchAll(beginning string) bool { return strings.Trim(parseOp(beginning).path, "/") == "" }

// parsedOp is an op in its parts.
type parsedOp struct {
	op        string // as it is
	word      string // the method as it is sent
	method    string // in capitals; "" without one
	separator string // behind the method
	path      string // without a query, or the whole op if it is no route
	hasQuery  bool
	isURL     bool
	protocol  bool // behind the path stands the protocol of a request line
}

// parseOp returns the parts of an op. A method ends with a blank, with a colon in front of a slash, or in capitals with a slash:
// get/report and get:report are names of jobs.
func parseOp(op string) parsedOp {
	p := parsedOp{op: op, path: strings.TrimLeft(op, " \t")}
	if end := strings.IndexAny(p.path, " \t:"); end > 0 && IsMethod(p.path[:end]) {
		rest := strings.TrimLeft(p.path[end:], " \t:")
		separator := p.path[end : len(p.path)-len(rest)]
		if strings.HasPrefix(rest, "/") || strings.ContainsAny(separator, " \t") {
			p.word, p.method, p.separator, p.path = p.path[:end], strings.ToUpper(p.path[:end]), separator, rest
		}
	}
	if p.method != "" {
		if path, found := withoutProtocol(p.path); found {
			p.path, p.protocol = path, true
		}
	}
	if end := strings.IndexByte(p.path, '/'); p.method == "" && end > 0 && IsMethod(p.path[:end]) && p.path[:end] == strings.ToUpper(p.path[:end]) {
		p.word, p.method, p.path = p.path[:end], p.path[:end], p.path[end:]
	}
	if host := strings.ToLower(p.path[:min(len(p.path), len("https://"))]); strings.HasPrefix(host, "http://") || host == "https://" {
		_, rest, _ := strings.Cut(p.path, "://")
		p.isURL, p.path = true, "/"
		if begin := strings.IndexByte(rest, '/'); begin >= 0 {
			p.path = rest[begin:]
		}
	}
	if strings.HasPrefix(p.path, "/") {
		p.path, _, p.hasQuery = strings.Cut(p.path, "?")
	}
	return p
}

// withoutProtocol returns the path of a request line, as $request of nginx has it, without the protocol, and whether there is one.
func withoutProtocol(path string) (string, bool) {
	before, version, found := strings.Cut(path, " HTTP/")
	if !found || version == "" || strings.Trim(version, "0123456789.") != "" {
		return path, false
	}
	return before, true
}

// means reports whether an op that a pattern does not hold for is another spelling of one for which it does, and
// sets s then. Held reports that another pattern holds for the op: letters of its path that differ make it another
// route then.
func (p parsedOp) means(pattern string, held bool, s *OpSpelling) bool {
	text, isPrefix := strings.CutSuffix(pattern, "*")
	want := parseOp(text)
	if isPrefix && strings.HasPrefix(p.op, text) {
		return false // it holds
	}
	if want.hasQuery || p.method != want.method && p.method != "" && want.method != "" {
		return false
	}
	if p.method == "" && want.method != "" && !strings.HasPrefix(p.path, "/") {
		return false
	}
	path := p.path
	if p.method != "" && path != "" && path[0] != '/' && strings.HasPrefix(want.path, "/") {
		path = "/" + path
	}
	if want.method != "" && want.path != "" && want.path[0] != '/' && strings.HasPrefix(path, "/") {
		want.path = "/" + want.path
	}
	rest := ""
	if isPrefix && len(path) >= len(want.path) {
		path, rest = path[:len(want.path)], path[len(want.path):]
	}
	same := path == want.path
	if !isPrefix {
		path, want.path = strings.TrimRight(path, " /"), strings.TrimRight(want.path, " /")
		same = path == want.path || !held && strings.EqualFold(path, want.path)
	}
	reason := ""
	if !same && !isPrefix {
		if param, other := differentParam(path, want.path); param != "" {
			same, reason = true, "it has the parameter "+Shorten(param)+" in place of "+Shorten(other)
		}
	}
	if !same || isPrefix && want.path == "" && p.method == "" {
		return false
	}
	*s = OpSpelling{Meant: text + rest, Condition: pattern, Reason: cmp.Or(reason, p.differenceFrom(want))}
	return true
}

// differenceFrom returns the first difference from another spelling of an op.
func (p parsedOp) differenceFrom(want parsedOp) string {
	switch {
	case p.isURL:
		return "it is a URL"
	case p.method == "" && want.method != "":
		return "it has no method"
	case p.method != "" && want.method == "":
		return "it has a method, and the condition has none"
	case p.hasQuery:
		return "it has a query"
	case p.word != p.method:
		return "its method is in small letters"
	case want.word != want.method:
		return "the limit has its method in small letters: write it in capitals there"
	case p.protocol:
		return "it has the protocol of a request line behind its path"
	case want.protocol:
		return "the limit has the protocol of a request line behind its path: remove it there"
	case p.separator != "" && p.path != "" && p.path[0] != '/' && strings.HasPrefix(want.path, "/"):
		return "its path does not begin with a slash"
	case strings.HasPrefix(p.path, "/") && strings.HasPrefix(want.path, "/") && want.method != "" && !strings.Contains(want.op, "/"+want.path[1:]):
		return "the path of the limit does not begin with a slash: write one there"
	case p.separator != want.separator:
		return "one blank belongs behind its method"
	case strings.TrimLeft(p.op, " \t") != p.op:
		return "it begins with a blank"
	case strings.TrimLeft(want.op, " \t") != want.op:
		return "the limit has a blank in front of its op: remove it there"
	case strings.HasSuffix(p.op, " ") && !strings.HasSuffix(want.op, " "):
		return "it ends with a blank"
	case strings.HasSuffix(want.op, " ") && !strings.HasSuffix(p.op, " "):
		return "the limit has a blank behind its op: remove it there"
	case strings.TrimRight(p.path, " /") == strings.TrimRight(want.path, " /"):
		return "it ends with a slash, or lacks one"
	}
	return "small letters and capitals differ"
}
