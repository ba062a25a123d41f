package config

import (
	"fmt"
	"strings"
)

// commentMarks begin comments in other languages. Those that names and values begin with, too, have a space
// behind them.
var commentMarks = []string{"//", "/*", "; ", ";; ", "-- "}

// notInJSON is what to write in the place of a comment in JSON.
const notInJSON = "JSON has no comments: leave it out, or write the file as YAML, where a comment begins with #"

// foreignComment returns what to write in the place of text that begins with the comment of another language,
// or "".
func foreignComment(text string, isJSON bool) string {
	for _, mark := range commentMarks {
		comment, found := strings.CutPrefix(text, mark)
		switch {
		case !found:
			continue
		case isJSON:
			return notInJSON
		}
		comment = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(comment), "*/"))
		return "a comment begins with #: write " + shown("# "+comment)
	}
	return ""
}

// looksLikeJSON reports whether lines begin as those of JSON do.
func looksLikeJSON(lines []string) bool {
	for _, line := range lines {
		if text := strings.TrimSpace(line); text != "" {
			return text[0] == '{'
		}
	}
	return false
}

// inComment describes a bracket of a line that a comment behind it closes, or returns "".
func inComment(lines []string, line int, bracket rune) string {
	if line < 1 || line > len(lines) {
		return ""
	}
	text := lines[line-1]
	for at := strings.IndexByte(text, '#'); at > 0 && at < len(text); {
		_, open := openBracket([]string{text[:at]})
		opened, _ := openBracket([]string{text[:at], "["}) // in the second line, unless that is in quotes
		if text[at-1] == ' ' && open != 0 && opened == 2 && strings.ContainsRune(text[at:], closing[bracket]) {
			return fmt.Sprintf("the %c is inside of the comment %s: write it in front of the #", closing[bracket], shown(text[at:]))
		}
		next := strings.IndexByte(text[at+1:], '#')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return ""
}

// notClosed returns the advice to close a bracket.
func (e *yamlError) notClosed(line int, bracket rune) string {
	if message := inComment(e.lines, line, bracket); message != "" {
		return message
	}
	return fmt.Sprintf("the %c is not closed: write %c behind the last value", bracket, closing[bracket])
}

// commentAround describes a comment that the error of a value in a bracket follows from, or returns "".
func (e *yamlError) commentAround(bracket rune) (line int, message string) {
	for _, line := range []int{e.Mark.Line, e.before(e.Mark.Line)} {
		if message := foreignComment(strings.TrimSpace(e.line(line)), looksLikeJSON(e.lines)); message != "" {
			return line, message
		}
	}
	if message := foreignComment(strings.TrimSpace(e.rest()), looksLikeJSON(e.lines)); message != "" {
		return e.Mark.Line, message
	}
	return e.ContextMark.Line, inComment(e.lines, e.ContextMark.Line, bracket)
}
