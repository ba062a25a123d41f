package accesslog

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// DefaultOp is the template that names the operation of a request when the user
// gives none: the method and the route, for example "GET /v1/users/{id}", as services
// send it.
const DefaultOp = "{method} {route}"

// Template makes a word of an entry, such as the operation or the key by which
// a limiter counts. It is immutable and may be used concurrently.
type Template struct {
	text  string
	parts []part
}

// String returns the text of the template.
func (t *Template) String() string { return t.text }

// HasField reports whether the template has a field: without one it is the same text for each line.
func (t *Template) HasField() bool {
	return slices.ContainsFunc(t.parts, func(p part) bool { return p.expand != nil })
}

// part is a piece of literal text, or a field if expand is not nil.
type part struct {
	literal string
	expand  func(e *Entry, arg argument) string
	arg     argument
}

// ParseTemplate parses a template. Text stands for itself, "{{" and "}}" for a
// brace, and these fields for a part of the entry:
//
//	{method}        the method: GET
//	{path}          the target without its query string and fragment, and
//	                without scheme and host: /a/b/c.png; "/" if nothing is left
//	{path:N}        at most N segments of the path, 1 to 64; with N of 2, /a/b.
//	                Empty segments do not count and are left out, like a slash
//	                at the end, so that /a//b/ is /a/b. Neither dots nor
//	                percent signs are interpreted
//	{route}         the path with {id} in place of each segment that has a digit, but
//	                of a version such as v1: /v1/users/{id}. Empty segments are left
//	                out, as those of {path:N}
//	{route:N}       at most N segments of it
//	{query:NAME}    the value of the first query parameter of that name, decoded
//	{status}        the status: 200
//	{user}          the authenticated user
//	{host}          the client's address
//	{referer_host}  the host of the referer, in lower case, without the port
//	{ua_family}     a rough class of the user agent: Chrome, Googlebot, bot, curl;
//	                "other" if unknown
//
// A field that the entry lacks is empty. The error has the mistake in the template and
// its correction.
func ParseTemplate(s string) (*Template, error) {
	parts, err := parseParts(s)
	if err == nil && len(parts) == 1 {
		err = checkLiteral(parts[0].literal)
	}
	if err != nil {
		return nil, fmt.Errorf("parse template %s: %w", quote(s), err)
	}
	return &Template{text: s, parts: parts}, nil
}

func parseParts(s string) ([]part, error) {
	if s == "" {
		return nil, errors.New("it is empty: want text, or fields in braces such as {user} or {route}")
	}
	var parts []part
	var literal strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			literal.WriteString(s)
			break
		}
		literal.WriteString(s[:i])
		brace := s[i]
		s = s[i+1:]
		if s != "" && s[0] == brace {
			literal.WriteByte(brace)
			s = s[1:]
			continue
		}
		if brace == '}' {
			return nil, errors.New(`a "}" closes nothing: want "}}" for a brace in the text`)
		}
		body, rest, ok := strings.Cut(s, "}")
		if !ok {
			return nil, errors.New(`a "{" is not closed: want "{{" for a brace in the text`)
		}
		field, err := parseField(body)
		if err != nil {
			return nil, err
		}
		if literal.Len() > 0 {
			parts = append(parts, part{literal: literal.String()})
			literal.Reset()
		}
		parts = append(parts, field)
		s = rest
	}
	if literal.Len() > 0 {
		parts = append(parts, part{literal: literal.String()})
	}
	return parts, nil
}

// checkLiteral refuses a template that is the name of a field without braces: every request would have
// that word.
func checkLiteral(text string) error {
	name, _, _ := strings.Cut(text, ":")
	for _, f := range fields {
		if f.name == name {
			return fmt.Errorf("%s is a field of the log, and fields are written in braces: want {%s}", excerpt(text), excerpt(text))
		}
	}
	return nil
}

// parseField parses the text between the braces of a field.
func parseField(body string) (part, error) {
	name, text, hasArg := strings.Cut(body, ":")
	for _, f := range fields {
		if f.name != name {
			continue
		}
		p := part{expand: f.expand, arg: argument{text: text}}
		switch {
		case f.wants == nothing && hasArg:
			return part{}, fmt.Errorf("{%s} takes no argument: want {%s}", excerpt(body), name)
		case f.wants == word && text == "":
			return part{}, fmt.Errorf("{%s} lacks its argument: want for example {%s:page}", excerpt(body), name)
		case f.wants == optionalCount && hasArg:
			n, err := strconv.ParseUint(text, 10, 8)
			if err != nil || n < 1 || n > maxSegments {
				return part{}, fmt.Errorf("{%s} has a bad argument: want a number from 1 to %d, for example {%s:2}", excerpt(body), maxSegments, name)
			}
			p.arg.count = int(n)
		}
		return p, nil
	}
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].name
	}
	if near := limit.Nearest(name, names); near != "" {
		return part{}, fmt.Errorf("{%s} is no field: did you mean {%s}?", excerpt(body), near+strings.TrimPrefix(excerpt(body), name))
	}
	return part{}, fmt.Errorf("{%s} is no field: want one of %s", excerpt(body), fieldNames())
}

// Expand makes the word of e: valid UTF-8 of 1 to 1,024 bytes without control
// characters, so that any request makes a valid name of an operation. Control
// characters and bytes that are not UTF-8 become "?", a longer word is cut
// between two characters, and an empty one becomes "-". The word shares no
// memory with e.
func (t *Template) Expand(e *Entry) string {
	var buf [maxWord]byte // On the stack, most words are far shorter.
	word := buf[:0]
	for i, cut := 0, false; i < len(t.parts) && !cut; i++ {
		p := &t.parts[i]
		text := p.literal
		if p.expand != nil {
			text = p.expand(e, p.arg)
		}
		word, cut = appendClean(word, text)
	}
	if len(word) == 0 {
		return "-"
	}
	return string(word)
}
