package config

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// breaks makes the line ends of YAML those of Go.
var breaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// yamlLines returns the first n lines of a file.
func yamlLines(content []byte, n int) []string {
	lines := strings.SplitN(breaks.Replace(string(content)), "\n", n+1)
	return lines[:min(n, len(lines))]
}

// line returns a line by its number, from 1, and "" if there is none.
func (e *yamlError) line(n int) string {
	if n < 1 || n > len(e.lines) {
		return ""
	}
	return e.lines[n-1]
}

// before returns the number of the last line before another one that is neither empty nor a
// comment, or 0.
func (e *yamlError) before(n int) int {
	for n--; n > 0; n-- {
		if text := strings.TrimSpace(e.line(n)); text != "" && text[0] != '#' {
			break
		}
	}
	return max(n, 0)
}

// shown returns text of a file for a message, in quotes and shortened.
func shown(text string) string {
	const most = 40
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	text = hideURL(strings.TrimSpace(text))
	if strings.Contains(text, `"`) {
		return fmt.Sprintf("%#q", text)
	}
	return fmt.Sprintf("%q", text)
}

var (
	// withoutSpace matches a name whose value follows the colon at once.
	withoutSpace = regexp.MustCompile(`^((?:- +)*["']?[A-Za-z_][\w.-]*["']?:)([^\s:/].*)$`)
	// dashWithoutSpace matches an entry of a list that follows the - at once.
	dashWithoutSpace = regexp.MustCompile(`^-([A-Za-z_{\["'].*)$`)
	// withoutColon matches a name without its colon.
	withoutColon = regexp.MustCompile(`^[A-Za-z_][\w.-]*$`)
	conflictMark = regexp.MustCompile(`^(<{7}|={7}|>{7}|\|{7})( |$)`)
)

// lineMistake describes a mistake that is visible on one line alone, or returns "".
func (e *yamlError) lineMistake(n int) string {
	line := e.line(n)
	if comment := foreignComment(strings.TrimSpace(line), looksLikeJSON(e.lines)); comment != "" {
		return comment
	}
	return slipOf(line)
}

// dashMissing describes a line with a limit that begins no entry of a list, or returns "".
func (e *yamlError) dashMissing(n int) string {
	if line := e.line(n); !looksLikeJSON(e.lines) && limitWithoutDash.MatchString(line) {
		return "a - is missing in front of a limit: write " + shown("- "+strings.TrimSpace(line))
	}
	return ""
}

// limitWithoutDash matches a line with a limit in braces that begins no entry of a list.
var limitWithoutDash = regexp.MustCompile(`^\s*\{ ?id: .*\}\s*$`)

// slipOf describes a mistake of a line, or returns "".
func slipOf(line string) string {
	text := strings.TrimLeftFunc(line, unicode.IsSpace)
	indent := strings.TrimSuffix(line, text)
	switch {
	case text == "" || text[0] == '#':
		return ""
	case strings.Contains(indent, "\t"):
		return indentedByTab
	case strings.Trim(indent, " ") != "":
		return indentedOddly
	case conflictMark.MatchString(text):
		return "a mark of a merge conflict: keep one of its two sides, and remove the marks"
	case strings.ContainsRune(text, '\uFF1A') && !strings.Contains(text, ": "):
		return "the colon is a wide one, U+FF1A: write : and a space"
	}
	if m := dashWithoutSpace.FindStringSubmatch(text); m != nil {
		return "a space is missing behind the -: write " + shown("- "+m[1])
	}
	if m := withoutSpace.FindStringSubmatch(text); m != nil && !strings.Contains(text, ": ") {
		return "a space is missing behind the colon: write " + shown(m[1]+" "+m[2])
	}
	return ""
}

// colonMissing describes a line that has no colon behind its name.
func colonMissing(line string) string {
	if text := strings.TrimLeft(line, " -"); strings.HasPrefix(text, "{{") || strings.HasPrefix(text, "{%") {
		return ofTemplate
	}
	words := strings.Fields(strings.Replace(strings.TrimLeft(line, " -"), "=", " ", 1))
	if len(words) == 1 && withoutColon.MatchString(words[0]) {
		return "a colon is missing behind the name: write " + shown(words[0]+":")
	}
	if len(words) < 2 {
		return "a name and its value belong here: NAME: VALUE"
	}
	return "a colon is missing between a name and its value: write " + shown(words[0]+": "+strings.Join(words[1:], " "))
}

const indentedOddly = "the line is indented by characters that only look like spaces: write spaces"

// oddSpaces match characters that look like a space, or like nothing, where YAML has spaces, and a dash that is none of a list.
var (
	oddSpaces = regexp.MustCompile(`^[ -]*[\x{00a0}\x{2007}\x{202f}\x{200b}\x{feff}]|[:,{\[][\x{00a0}\x{2007}\x{202f}\x{200b}\x{feff}]`)
	oddDash   = regexp.MustCompile(`^\s*([\x{2010}-\x{2015}\x{2212}])\s*\w`)
)

// oddSpace returns the line of an error of the parser, or of one that is next to it, that has one of them, and what to write instead, or "".
func oddSpace(content []byte, err error) (line int, message string) {
	load, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return 0, ""
	}
	lines := yamlLines(bytes.TrimPrefix(content, []byte("\ufeff")), max(load.Mark.Line, load.ContextMark.Line))
	for n, text := range lines { // the parser may go on behind such a line
		if text = strings.TrimLeft(text, " "); text != "" && text[0] >= utf8.RuneSelf {
			if first, _ := utf8.DecodeRuneInString(text); unicode.IsSpace(first) && strings.TrimSpace(text) != "" {
				return n + 1, indentedOddly
			}
		}
	}
	for _, line := range []int{load.ContextMark.Line, load.Mark.Line - 1, load.Mark.Line} {
		if line < 1 || line > len(lines) {
			continue
		}
		text, _, _ := strings.Cut(quotedText.ReplaceAllString(lines[line-1], "x"), "#")
		switch m := oddDash.FindStringSubmatch(text); {
		case oddSpaces.MatchString(text):
			return line, "a character that only looks like a space, such as a no-break space: write a space in its place"
		case m != nil:
			return line, m[1] + " is a longer dash: a limit begins with - and a space"
		}
	}
	return 0, ""
}

// quotedText matches text in quotes.
var quotedText = regexp.MustCompile(`"[^"]*"|'[^']*'`)

// closing has the bracket that closes another one.
var closing = map[rune]rune{'[': ']', '{': '}'}

// openBracket returns the last bracket that lines open and do not close, and the number of its
// line, or 0. Brackets in quotes and comments are none.
func openBracket(lines []string) (line int, bracket rune) {
	var open []rune
	var at []int
	quoted := rune(0)
nextLine:
	for n, text := range lines {
		last := ' '
		for _, c := range text {
			switch {
			case quoted != 0:
				if c == quoted {
					quoted = 0
				}
			case (c == '"' || c == '\'') && strings.ContainsRune(" ,[{:", last):
				quoted = c
			case c == '#' && last == ' ':
				continue nextLine
			case c == '[' || c == '{':
				open, at = append(open, c), append(at, n+1)
			case len(open) > 0 && c == closing[open[len(open)-1]]:
				open, at = open[:len(open)-1], at[:len(at)-1]
			}
			last = c
		}
	}
	if len(open) == 0 {
		return 0, 0
	}
	return at[len(at)-1], open[len(open)-1]
}
