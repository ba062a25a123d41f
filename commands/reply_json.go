package commands

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// booleans are the names of values that are 1 or 0 in RESP, and true or false in JSON.
var booleans = map[string]bool{"allowed": true, "applies": true}

// AppendJSON appends a reply of Call as JSON. Ok is false for a reply of other types than the RL.*
// commands have, such as an error.
func AppendJSON(b, reply []byte) (out []byte, ok bool) {
	out, _, ok = appendJSON(b, reply, "")
	return out, ok
}

// appendJSON appends the first value of a reply in RESP3 as JSON, and returns the rest of the
// reply. The name is that of the value in a map. Ok is false for a reply of other types than our
// commands have: maps, arrays, texts, integers and null.
func appendJSON(b, reply []byte, name string) (out, rest []byte, ok bool) {
	line, rest, ok := bytes.Cut(reply, []byte("\r\n"))
	if !ok || len(line) == 0 {
		return b, nil, false
	}
	kind, word := line[0], string(line[1:])
	if kind == '_' {
		return append(b, "null"...), rest, true
	}
	n, err := strconv.Atoi(word)
	switch {
	case err != nil:
		return b, nil, false
	case kind == ':' && booleans[name]:
		return strconv.AppendBool(b, n == 1), rest, true
	case kind == ':':
		return append(b, word...), rest, true
	case kind == '$' && n >= 0 && len(rest) >= n+2:
		return appendText(b, string(rest[:n])), rest[n+2:], true
	case kind == '*':
		return appendElements(append(b, '['), rest, n, false)
	case kind == '%':
		return appendElements(append(b, '{'), rest, n, true)
	}
	return b, nil, false
}

// appendElements appends the n elements of an array or pairs of a map, and its end.
func appendElements(b, rest []byte, n int, pairs bool) (out, remaining []byte, ok bool) {
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		name := ""
		if pairs {
			begin := len(b)
			if b, rest, ok = appendJSON(b, rest, ""); !ok {
				return b, nil, false
			}
			name = string(bytes.Trim(b[begin:], `"`))
			b = append(b, ':')
		}
		if b, rest, ok = appendJSON(b, rest, name); !ok {
			return b, nil, false
		}
	}
	if pairs {
		return append(b, '}'), rest, true
	}
	return append(b, ']'), rest, true
}

// appendText appends a JSON string.
func appendText(b []byte, text string) []byte {
	quoted, _ := json.Marshal(text) // of a text, which never fails
	return append(b, quoted...)
}
