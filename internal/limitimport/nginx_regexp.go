package limitimport

import (
	"regexp"
	"slices"
	"strings"
)

// mayMatch returns a function that reports whether a regular expression may match a path that begins with prefix: the letters that it
// begins with, and prefix, agree as far as both go.
func (l location) mayMatch() func(prefix string) bool {
	begins := l.begins()
	if l.modifier == "~*" {
		for i := range begins {
			begins[i] = strings.ToLower(begins[i])
		}
	}
	return func(prefix string) bool {
		if l.modifier == "~*" {
			prefix = strings.ToLower(prefix)
		}
		return slices.ContainsFunc(begins, func(begin string) bool {
			n := min(len(begin), len(prefix))
			return begin[:n] == prefix[:n]
		})
	}
}

// plainGroup matches a group of words at the beginning of the rest of a regular expression.
var plainGroup = regexp.MustCompile(`^\((?:\?:)?([\w/|-]*)\)(?:[^*?{]|$)`)

// begins returns letters with one of which each path begins that a regular expression matches.
func (l location) begins() []string {
	begin, rest := l.begin()
	group := plainGroup.FindStringSubmatch(rest)
	if group == nil {
		return []string{begin}
	}
	all := strings.Split(group[1], "|")
	for i := range all {
		all[i] = begin + all[i]
	}
	return all
}

// begin returns letters with which all paths begin that a regular expression matches, and what follows them in it.
func (l location) begin() (letters, rest string) {
	text, anchored := strings.CutPrefix(l.path, "^")
	if !anchored || hasAlternatives(text) {
		return "", ""
	}
	begin := []byte{}
	for len(text) > 0 {
		letter, width := text[0], 1
		if letter == '\\' && len(text) > 1 && !isWord(text[1]) {
			letter, width = text[1], 2
		} else if !isWord(letter) && letter != '/' && letter != '-' {
			break
		}
		if text = text[width:]; text != "" && strings.IndexByte("*?{", text[0]) >= 0 {
			return string(begin), "" // the letter may be missing
		}
		begin = append(begin, letter)
	}
	return string(begin), text
}

// hasAlternatives reports whether a regular expression is one of several, or may be: a | stands outside of parentheses.
func hasAlternatives(text string) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			return strings.Contains(text, "|")
		case '(':
			depth++
		case ')':
			depth--
		case '|':
			if depth <= 0 {
				return true
			}
		}
	}
	return false
}

// isWord reports whether a byte is a letter, a digit or _.
func isWord(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
