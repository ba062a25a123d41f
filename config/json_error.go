package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// beginsAsJSON matches the beginning of a file in JSON: names in quotes, where YAML mostly has none.
var beginsAsJSON = regexp.MustCompile(`^\s*\{\s*"[^"\n]*"\s*:`)

// noComma begins the message about a comma that is missing.
const noComma = "a comma is missing in front of "

// opens are the letters that a name in JSON or a value with others in it begins with. In YAML a word needs no quotes, so that
// other letters may go on with a value that is none of JSON.
const opens = "\"{["

// jsonErrors are the messages of encoding/json that people cause, by a part of the message and the letters of which one stands
// there, if those matter, and what to write there.
var jsonErrors = []struct{ part, before, text string }{
	{"after top-level value", "", "%s stands behind the end of the file's value: remove it, or a bracket too many in front of it"},
	{"after object key:value pair", opens, noComma + "%s"},
	{"after array element", opens, noComma + "%s"},
	{"after object key", opens, "a colon is missing in front of %s, between a name and its value"},
	{`'\n' in string literal`, "", "a text is not closed: write \" at its end"},
}

// explainJSON returns the line, from 1, of the first mistake in the syntax of a file in JSON, and what to write there. It returns ""
// for a file that does not begin as one, or whose mistake YAML allows or explains as well.
func explainJSON(content []byte) (line int, message string) {
	if !beginsAsJSON.Match(content) {
		return 0, ""
	}
	syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(content, new(json.RawMessage)))
	if !ok || syntax.Offset < 1 || syntax.Offset > int64(len(content)) {
		return 0, ""
	}
	before, rest := content[:syntax.Offset-1], content[syntax.Offset-1:]
	line = 1 + bytes.Count(before, []byte("\n"))
	text, _, _ := strings.Cut(string(rest[:min(len(rest), maxCodeBytes)]), "\n")
	if strings.HasPrefix(strings.TrimSpace(text), "#") || strings.HasPrefix(text, "/") { // a comment
		return 0, ""
	}
	switch first := text[:min(len(text), 1)]; {
	case first != "" && strings.Contains("]}", first) && !strings.Contains(syntax.Error(), "top-level"):
		return 0, "" // YAML names the bracket that is not closed
	case bytes.HasSuffix(before, []byte(`"`)) && first >= "A":
		return line, fmt.Sprintf("the text in front of %s is not closed: write \" at its end", shown(text))
	}
	for _, e := range jsonErrors {
		if strings.Contains(syntax.Error(), e.part) && (e.before == "" || text != "" && strings.Contains(e.before, text[:1])) {
			if !strings.Contains(e.text, "%") {
				return line, e.text
			}
			return line, fmt.Sprintf(e.text, shown(text))
		}
	}
	return 0, ""
}

// commaMissing returns the line and the message of a comma that is missing in JSON in front of a name in quotes or a bracket, which
// YAML reads as a part of the value, or "".
func commaMissing(content []byte) (line int, message string) {
	line, message = explainJSON(content)
	if !strings.HasPrefix(message, noComma) {
		return 0, ""
	}
	return line, message
}
