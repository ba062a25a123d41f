package limitimport

import (
	"errors"
	"strings"
)

// nginxWord is a word, or one of ; { } if it is not quoted.
type nginxWord struct {
	text   string
	quoted bool
	line   int
}

func (w nginxWord) is(mark string) bool { return !w.quoted && w.text == mark }

// isOfKubernetes reports whether a word is the key that each object of Kubernetes has, such as an Ingress, in YAML or JSON.
func (w nginxWord) isOfKubernetes() bool {
	return w.is("apiVersion:") || w.quoted && w.text == "apiVersion"
}

// unescaped replaces the escapes that nginx does in words, quoted or not; it keeps others, as in regular expressions.
var unescaped = strings.NewReplacer(`\"`, `"`, `\'`, `'`, `\\`, `\`, `\t`, "\t", `\r`, "\r", `\n`, "\n")

// nginxWords splits a configuration, which begins on a line, into words.
func nginxWords(text string, line int) (words []nginxWord, err error) {
	lua := false // the block of the present directive is a program in Lua
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '{' && lua:
			lua = false
			end := afterLua(text[i+1:])
			if end < 0 {
				return nil, at(line, errors.New("a block of Lua does not end"))
			}
			words = append(words, nginxWord{"{", false, line}, nginxWord{"}", false, line})
			line += strings.Count(text[i:i+1+end], "\n")
			i += 1 + end
		case c == '\n':
			line++
			i++
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case c == '#':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case strings.IndexByte(";{}", c) >= 0:
			lua = false
			words = append(words, nginxWord{string(c), false, line})
			i++
		case c == '"' || c == '\'':
			end := i + 1
			for end < len(text) && text[end] != c {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(text) {
				return nil, at(line, errors.New("a quote does not end"))
			}
			words = append(words, nginxWord{unescaped.Replace(text[i+1 : end]), true, line})
			line += strings.Count(text[i:end], "\n")
			i = end + 1
		default:
			end, inName := i, false
			for end < len(text) && !endsWord(text, end, inName) {
				inName = inName || text[end] == '{'
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(text))
			lua = lua || strings.HasSuffix(text[i:end], luaBlock) && beginsDirective(words)
			words = append(words, nginxWord{unescaped.Replace(text[i:end]), false, line})
			i = end
		}
	}
	return words, nil
}

// beginsDirective reports whether the word behind others is the name of a directive.
func beginsDirective(words []nginxWord) bool {
	if len(words) == 0 {
		return true
	}
	last := words[len(words)-1]
	return !last.quoted && len(last.text) == 1 && strings.Contains(";{}", last.text)
}

// endsWord reports whether a word ends before a byte. The { of ${name} is part of it, and so is each } behind one: inName.
func endsWord(text string, i int, inName bool) bool {
	switch text[i] {
	case ' ', '\t', '\r', '\n', ';':
		return true
	case '{':
		return i == 0 || text[i-1] != '$'
	case '}':
		return !inName
	}
	return false
}
