package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

// yamlError is an error of the YAML parser, with the lines of the file up to it.
type yamlError struct {
	*yaml.LoadError
	lines []string
}

// notYAML and notJSON begin the messages about files that the parser does not read.
const (
	notYAML = "not readable as YAML: "
	notJSON = "not readable as JSON: "
)

// ExplainYAML returns the line, from 1, at which to look for the cause of an error of the YAML parser
// about content, and that it is not YAML, with what to write there instead.
func ExplainYAML(content []byte, err error) (line int, message string) {
	if line := unreadableLine(content); line > 0 {
		return line, notYAML + "a byte or character that YAML does not allow; the file must be text in UTF-8"
	}
	return explainYAML(content, err)
}

// explainYAML does the same for content that is text.
func explainYAML(content []byte, err error) (line int, message string) {
	if LooksLikeCode(content) {
		return 1, ErrCode.Error()
	}
	if line, message = oddSpace(content, err); message != "" {
		return line, notYAML + message
	}
	if hasEquals(content) {
		return 1, ofEquals
	}
	if line, message = explainJSON(content); message != "" {
		return line, notJSON + message
	}
	line, message = causeOf(content, err)
	return line, notYAML + message
}

// causeOf returns the line, from 1, at which to look for the cause of an error of the YAML
// parser, and what to write there instead.
func causeOf(content []byte, err error) (line int, message string) {
	load, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return 1, plain(err.Error())
	}
	e := &yamlError{load, yamlLines(content, max(load.Mark.Line, load.ContextMark.Line))}
	for _, m := range yamlMistakes {
		if strings.Contains(e.Message, m.part) && strings.Contains(e.ContextMsg, m.within) {
			if m.explain == nil {
				return max(e.Mark.Line, 1), m.text
			}
			if line, message = m.explain(e); message != "" {
				return line, message
			}
		}
	}
	if line = unreadableLine(content); line > 0 && e.Mark.Line == 0 {
		return line, "a byte or character that YAML does not allow: save the file as text in UTF-8"
	}
	message = e.Message
	if e.ContextMsg != "" {
		message += ", " + e.ContextMsg
	}
	return max(e.Mark.Line, 1), plain(message)
}

// yamlMistakes are the messages of the parser that people cause, by a part of the message and of
// its context, each with a text or a function that makes one.
var yamlMistakes = []struct {
	part, within, text string
	explain            func(e *yamlError) (line int, message string)
}{
	{part: "could not find expected ':'", explain: (*yamlError).noColon},
	{part: "mapping values are not allowed", explain: (*yamlError).secondColon},
	{part: "did not find expected key", explain: (*yamlError).noName},
	{part: "did not find expected '-' indicator", explain: (*yamlError).noDash},
	{part: "did not find expected <document start>", explain: (*yamlError).secondRoot},
	{part: "did not find expected ','", explain: (*yamlError).noComma},
	{part: "did not find expected node content", explain: (*yamlError).noValue},
	{part: "cannot start any token", explain: (*yamlError).badBeginning},
	{part: "tab", text: indentedByTab},
	{part: "found unexpected", within: "quoted scalar", explain: func(e *yamlError) (int, string) {
		return e.ContextMark.Line, fmt.Sprintf("the quote in column %d is not closed: write another one behind the text", e.ContextMark.Column)
	}},
	{within: "quoted scalar", text: `a backslash in double quotes begins an escape such as \n: write two of them, or put the text into single quotes`},
	{part: "unknown anchor", text: "text that begins with * is a reference to an anchor, and there is none of that name: put the text into quotes"},
	{within: "scanning an alias", text: "text that begins with * needs quotes: without them it is a reference to an anchor"},
	{within: "scanning an anchor", text: "text that begins with & needs quotes: without them it is an anchor"},
	{within: "directive", text: textOfDirective},
	{part: "directive", text: textOfDirective},
	{part: "YAML document", text: "the file says that it is of another version of YAML: remove its line with %YAML"},
	{part: "tag", text: textOfTag},
	{within: "tag", text: textOfTag},
	{within: "block scalar", explain: (*yamlError).blockText},
	{part: "comment without preceding whitespace", text: "# begins a comment only behind a space: write a space before it, or put the # into the quotes"},
	{part: "sequence entries are not allowed", text: "a list begins on a line of its own: write - at the beginning of the line below, or the list in brackets: [a, b]"},
	{part: "mapping keys are not allowed", text: "text that begins with ? and a space needs quotes"},
	{within: "document-end marker", text: "... ends a file of YAML, and text follows: remove the ..."},
}

const (
	indentedByTab   = "the line is indented by a tab: YAML is indented by spaces alone"
	textOfDirective = "a line that begins with % is a directive of YAML: put quotes around the text, or remove the line"
	textOfTag       = "text that begins with ! needs quotes: without them it is a tag of YAML"
)

// rest returns the line from the place of the error on.
func (e *yamlError) rest() string {
	runes := []rune(e.line(e.Mark.Line))
	return string(runes[min(max(e.Mark.Column-1, 0), len(runes)):])
}

// begins reports whether the place of the error is the beginning of its line.
func (e *yamlError) begins() bool { return e.rest() == strings.TrimLeft(e.line(e.Mark.Line), " ") }

// slip describes a mistake on the line of the error, or on the one before.
func (e *yamlError) slip() (line int, message string) {
	for _, line := range []int{e.Mark.Line, e.before(e.Mark.Line)} {
		message := e.lineMistake(line)
		if line == e.Mark.Line || strings.HasPrefix(strings.TrimSpace(e.line(e.Mark.Line)), "- ") { // else the line before is right
			message = cmp.Or(message, e.dashMissing(line))
		}
		if message != "" {
			return line, message
		}
	}
	return 0, ""
}

// noColon explains a name without a colon.
func (e *yamlError) noColon() (int, string) {
	if message := cmp.Or(e.lineMistake(e.ContextMark.Line), e.dashMissing(e.ContextMark.Line)); message != "" {
		return e.ContextMark.Line, message
	}
	return e.ContextMark.Line, colonMissing(e.line(e.ContextMark.Line))
}

// secondColon explains a colon inside of a value.
func (e *yamlError) secondColon() (int, string) {
	if line, message := e.slip(); message != "" {
		return line, message
	}
	if line, bracket := openBracket(e.lines[:min(max(e.Mark.Line-1, 0), len(e.lines))]); line > 0 {
		return line, e.notClosed(line, bracket)
	}
	line := e.line(e.Mark.Line)
	if strings.Contains(strings.TrimSuffix(line, e.rest()), ": ") {
		return e.Mark.Line, twoColons(line)
	}
	before := e.before(e.Mark.Line)
	switch text := e.line(before); {
	case strings.HasPrefix(text, "%"):
		return before, textOfDirective
	case !strings.Contains(text, ":"):
		return before, colonMissing(text)
	}
	return e.Mark.Line, fmt.Sprintf("the line is indented more than line %d, which has a value already: begin the names of one mapping in the same column", before)
}

var (
	// nestedInLine matches a mapping behind the name of another one.
	nestedInLine = regexp.MustCompile(`^\s*(?:- )?(\w+): (\w+): ([^:{}\[\]"]+|"[^"]*")$`)
	// nestedInBraces matches a field that is a mapping inside of one in braces.
	nestedInBraces = regexp.MustCompile(`[{,] *(when|overrides): (\w+): ([^:,{}\[\]"]+|"[^"]*")`)
	// fieldsInLine matches several names with their values behind each other.
	fieldsInLine = regexp.MustCompile(`^\s*(?:- )?(\w+: [^:{}"']+, \w+: .*)$`)
)

// inBraces advises braces for a mapping behind a name: name, name and value are the submatches of m.
func inBraces(m []string) string {
	value := strings.Trim(strings.TrimSpace(m[3]), `"`)
	return fmt.Sprintf("a mapping behind a name stands in braces: write %s", shown(fmt.Sprintf("%s: {%s: %q}", m[1], m[2], value)))
}

// twoColons explains a line with two names.
func twoColons(line string) string {
	if m := nestedInLine.FindStringSubmatch(line); m != nil {
		return inBraces(m)
	}
	if m := fieldsInLine.FindStringSubmatch(line); m != nil {
		return fmt.Sprintf("several names on one line: put each on a line of its own, or all of them into braces: %s", shown("{"+strings.TrimSpace(m[1])+"}"))
	}
	return "a second colon with a space behind it: put quotes around the value that contains it"
}

// noName explains a line that is none of its mapping.
func (e *yamlError) noName() (int, string) {
	if line, message := e.slip(); message != "" {
		return line, message
	}
	switch {
	case !e.begins() && foreignComment(e.rest(), looksLikeJSON(e.lines)) != "":
		return e.Mark.Line, foreignComment(e.rest(), looksLikeJSON(e.lines))
	case !e.begins():
		return e.Mark.Line, fmt.Sprintf("%s stands behind a value that is complete: remove it, or put quotes around the whole value", shown(e.rest()))
	case strings.HasPrefix(e.rest(), "- "):
		return e.Mark.Line, fmt.Sprintf("the - is in column %d, where no list is: begin all entries of one list in the same column", e.Mark.Column)
	}
	if line, message := e.otherColumn(); message != "" {
		return line, message
	}
	return e.Mark.Line, fmt.Sprintf("the line begins in column %d, and the names of the mapping that begins on line %d in column %d: begin them in the same column",
		e.Mark.Column, e.ContextMark.Line, e.ContextMark.Column)
}

// nameInLine matches a line that begins with a name: its indentation and the name.
var nameInLine = regexp.MustCompile(`^( *)([\w./-]+):(?:\s|$)`)

// otherColumn explains a line of a limits file that begins in the column of no mapping: a name in column 1 that belongs below a
// section, or names above that are one level deeper, and no farther away than those that the parser means.
func (e *yamlError) otherColumn() (int, string) {
	isLimits, stray, deeper := false, 0, 0 // lines
	name := func(line int) string { return nameInLine.FindStringSubmatch(e.line(line))[2] }
	columnOf := func(line int) int { return len(nameInLine.FindStringSubmatch(e.line(line))[1]) + 1 }
	for line := 1; line < e.Mark.Line; line++ {
		m := nameInLine.FindStringSubmatch(e.line(line))
		if m == nil {
			continue
		}
		switch column := len(m[1]) + 1; {
		case column == 1 && documentFields[m[2]] != nil:
			isLimits, stray, deeper = true, 0, 0
		case column == 1 && isLimits && stray == 0 && limit.Nearest(m[2], documentKeys) == "":
			stray = line
		case column < e.Mark.Column:
			deeper = 0
		case column > e.Mark.Column && deeper == 0:
			deeper = line
		}
	}
	m := nameInLine.FindStringSubmatch(e.line(e.Mark.Line))
	switch {
	case !isLimits || m == nil:
	case stray > 0 && e.ContextMark.Column == 1:
		return stray, fmt.Sprintf("%s is no key of a limits file: indent it as line %d is", name(stray), e.Mark.Line)
	case deeper > 0 && documentFields[m[2]] == nil && columnOf(deeper)-e.Mark.Column <= e.Mark.Column-e.ContextMark.Column:
		return e.Mark.Line, fmt.Sprintf("%s begins in column %d, and %s on line %d in column %d: begin the names of one mapping in the same column",
			m[2], e.Mark.Column, name(deeper), deeper, columnOf(deeper))
	}
	return 0, ""
}

// noDash explains a line that is neither an entry of its list nor a part of one.
func (e *yamlError) noDash() (int, string) {
	if line, message := e.slip(); message != "" {
		return line, message
	}
	if !e.begins() {
		return e.noName()
	}
	first := e.line(e.ContextMark.Line)
	name := len(first) - len(strings.TrimLeft(first, " -")) + 1
	return e.Mark.Line, fmt.Sprintf("the line begins in column %d: the entries of the list that begins on line %d have their - in column %d, and their other lines begin in column %d",
		e.Mark.Column, e.ContextMark.Line, e.ContextMark.Column, name)
}

// secondRoot explains a line that follows the one value of the file.
func (e *yamlError) secondRoot() (int, string) {
	if line, message := e.slip(); message != "" {
		return line, message
	}
	for n := 1; n < e.Mark.Line; n++ {
		if text := e.line(n); strings.HasPrefix(text, " ") && !strings.HasPrefix(strings.TrimSpace(text)+"#", "#") {
			return n, "the line is indented, and later ones are not: begin the names of the file in column 1"
		}
	}
	return e.Mark.Line, "the lines above are a value that is complete, without names: begin the file with names and values, such as version: 1"
}

// beginsWithName reports whether the line of the error begins in column 1 with the name in front of the error.
func (e *yamlError) beginsWithName() bool {
	name, _, found := strings.Cut(e.line(e.Mark.Line), ":")
	return found && wholeName.MatchString(name) && len(name) == e.Mark.Column-1
}

// wholeName matches a name alone.
var wholeName = regexp.MustCompile(`^\w+$`)

// noComma explains a value in brackets or braces that goes on unexpectedly.
func (e *yamlError) noComma() (int, string) {
	open := '['
	if strings.Contains(e.Message, "}") {
		open = '{'
	}
	rest, where := strings.TrimSpace(e.rest()), ""
	if m := nameAtEnd.FindString(strings.TrimSuffix(e.line(e.Mark.Line), e.rest())); m != "" && strings.IndexAny(rest, "[{") == 0 && !strings.HasPrefix(rest, "{{") {
		return e.Mark.Line, "a space is missing behind the colon: write " + shown(m+" "+rest[:1]+" ...")
	}
	if e.ContextMark.Line != e.Mark.Line {
		where = fmt.Sprintf(" of line %d", e.ContextMark.Line)
	}
	if line, message := e.commentAround(open); message != "" {
		return line, message
	}
	if name := placeholder.FindString("$" + rest); name != "" && strings.HasPrefix("$"+rest, name) && strings.HasSuffix(strings.TrimSuffix(e.line(e.Mark.Line), e.rest()), "$") {
		return e.Mark.Line, fmt.Sprintf(ofVariable, name, "a value")
	}
	if template := e.unquotedTemplate(); template != "" {
		return e.Mark.Line, "text with braces needs quotes: write " + Quote(template)
	}
	switch {
	case rest == "":
		return e.ContextMark.Line, e.notClosed(e.ContextMark.Line, open)
	case strings.HasPrefix(rest, "{{"):
		return e.Mark.Line, ofTemplate
	case rest[0] == ':' && e.ContextMark.Line != e.Mark.Line && (open == '[' || e.beginsWithName()): // the name of the next field
		return e.ContextMark.Line, e.notClosed(e.ContextMark.Line, open)
	case rest[0] == ':':
		if m := nestedInBraces.FindStringSubmatch(e.line(e.Mark.Line)); m != nil {
			return e.Mark.Line, inBraces(m)
		}
		return e.Mark.Line, fmt.Sprintf("the value in front of %s is complete: a comma is missing before the name, or text with a colon needs quotes", shown(rest))
	case rest[0] == ']' || rest[0] == '}':
		return e.Mark.Line, fmt.Sprintf("%c cannot close the %c%s: write %c", rest[0], open, where, closing[open])
	}
	return e.Mark.Line, fmt.Sprintf("a comma is missing in front of %s, or the %c that closes the %c%s: text that has a comma, a bracket or a colon with a space behind it needs quotes",
		shown(rest), closing[open], open, where)
}

// nameAtEnd matches a name and its colon at the end of a text.
var nameAtEnd = regexp.MustCompile(`[A-Za-z_][\w.-]*:$`)

// templateBegin and templateEnd match the template of a route up to its first parameter, and from that on.
var (
	templateBegin = regexp.MustCompile(`[^\s:,"'\[\]{}][^:,"'\[\]{}]*$`)
	templateEnd   = regexp.MustCompile(`^\{[\w.-]+\}[^\s,"'\]{}]*(?:\{[\w.-]+\}[^\s,"'\]{}]*)*`)
)

// unquotedTemplate returns the template of a route without quotes whose parameter the parser takes for a value of its own, or "".
func (e *yamlError) unquotedTemplate() string {
	begin := templateBegin.FindString(strings.TrimSuffix(e.line(e.Mark.Line), e.rest()))
	end := templateEnd.FindString(e.rest())
	if end == "" || !strings.HasSuffix(begin, "/") {
		return ""
	}
	return begin + end
}

// noValue explains the place where a value is missing.
func (e *yamlError) noValue() (int, string) {
	if strings.HasPrefix(strings.TrimSpace(e.line(e.Mark.Line)), "{{") {
		return e.Mark.Line, ofTemplate
	}
	if rest := strings.TrimSpace(e.rest()); rest != "" {
		before := append(slices.Clone(e.lines[:max(e.Mark.Line-1, 0)]), strings.TrimSuffix(e.line(e.Mark.Line), e.rest()))
		if line, bracket := openBracket(before); line > 0 && (rest[0] == ']' || rest[0] == '}') && rune(rest[0]) != closing[bracket] {
			return line, fmt.Sprintf("the %c is not closed: write %c in front of %s", bracket, closing[bracket], shown(rest))
		}
		return e.Mark.Line, fmt.Sprintf("a value is missing in front of %s", shown(rest))
	}
	if line, bracket := openBracket(e.lines); line > 0 {
		return line, e.notClosed(line, bracket)
	}
	return max(e.Mark.Line, 1), "a value is missing, or the file ends too early"
}

// blockText explains a text of several lines that does not begin.
func (e *yamlError) blockText() (int, string) {
	if line, message := e.slip(); message != "" {
		return line, message
	}
	return e.Mark.Line, "text that begins with | or > needs quotes: without them it stands on the lines below"
}

// badBeginning explains a character at which nothing can begin.
func (e *yamlError) badBeginning() (int, string) {
	rest := e.rest()
	if rest == "" || rest[0] == '\t' {
		return e.Mark.Line, indentedByTab
	}
	if strings.HasPrefix(rest, "```") {
		return e.Mark.Line, "``` is a fence of Markdown: remove the line, and the other fence"
	}
	return e.Mark.Line, fmt.Sprintf("text that begins with %c needs quotes: \"%s\"", []rune(rest)[0], strings.Trim(shown(strings.TrimRight(rest, " ]},")), "\"`"))
}
