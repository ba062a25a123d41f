package server

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// lengthPattern is the syntax of a length in Redis.
var lengthPattern = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,17})$`)

// refCommand is a command as the reference parser found it: input[start:end].
type refCommand struct {
	start, end int
	words      []string
}

// refParse is the framing of RESP in the simplest form: all of the input at once, by
// recursive descent, everything copied. It returns the commands that are not empty, where
// the first incomplete one begins, and the protocol error that stopped it.
func refParse(input string, lim *parserBounds) (cmds []refCommand, rest int, err error) {
	for pos := 0; pos < len(input); {
		words, n, err := refOne(input[pos:], lim)
		if err != nil || n == 0 {
			return cmds, pos, err
		}
		if len(words) > 0 {
			name := strings.ToLower(words[0])
			isLine := input[pos] != '*' && len(words) == 3 && strings.HasPrefix(words[2], "HTTP/")
			if name == "post" || name == "host:" || isLine && (name == "get" || name == "head") {
				return cmds, pos, errHTTPRequest
			}
			cmds = append(cmds, refCommand{pos, pos + n, words})
		}
		pos += n
	}
	return cmds, len(input), nil
}

// refOne parses one command; n is 0 if it is incomplete.
func refOne(input string, lim *parserBounds) (words []string, n int, err error) {
	if input[0] != '*' {
		return refInline(input, lim)
	}
	line, pos, err := refLine(input, 0, lim, errCountLine, errCount)
	if pos == 0 {
		return nil, 0, err
	}
	if !lengthPattern.MatchString(line[1:]) {
		return nil, 0, errCount
	}
	count, _ := strconv.Atoi(line[1:])
	if count > lim.args {
		return nil, 0, errCount
	}
	if lim.unauthenticated && count > unauthenticatedArgs {
		return nil, 0, errUnauthenticatedCount
	}
	for range count {
		word, next, err := refWord(input, pos, lim)
		if err != nil || next == 0 {
			return nil, 0, err
		}
		words = append(words, word)
		pos = next
	}
	return words, pos, nil
}

func refWord(input string, pos int, lim *parserBounds) (word string, next int, err error) {
	line, body, err := refLine(input, pos, lim, errLengthLine, errLength)
	if body == 0 {
		return "", 0, err
	}
	if line == "" || line[0] != '$' {
		return "", 0, expectedDollar((line + "\r")[0])
	}
	size, _ := strconv.Atoi(line[1:])
	if !lengthPattern.MatchString(line[1:]) || size < 0 || size > lim.bulk || body+size+2 > lim.request {
		return "", 0, errLength
	}
	if lim.unauthenticated && size > unauthenticatedBulk {
		return "", 0, errUnauthenticatedLength
	}
	if len(input) < body+size+2 {
		return "", 0, nil
	}
	if input[body+size:body+size+2] != "\r\n" {
		return "", 0, errLength
	}
	return input[body : body+size], body + size + 2, nil
}

// refLine returns the line at pos and where the next begins, 0 if it has no end.
func refLine(input string, pos int, lim *parserBounds, tooLong, malformed error) (string, int, error) {
	line, _, found := strings.Cut(input[pos:], "\r")
	if len(line) > lim.inline {
		return "", 0, tooLong
	}
	end := pos + len(line)
	if !found || end+1 == len(input) {
		return "", 0, nil
	}
	if input[end+1] != '\n' {
		return "", 0, malformed
	}
	return line, end + 2, nil
}

func refInline(input string, lim *parserBounds) ([]string, int, error) {
	if strings.HasPrefix(input, "\x16\x03") {
		return nil, 0, errTLSHandshake
	}
	line, _, found := strings.Cut(input, "\n")
	if len(line) > lim.inline {
		return nil, 0, errInline
	}
	if !found {
		return nil, 0, nil
	}
	words, ok := refSplit(strings.TrimSuffix(line, "\r"))
	if !ok {
		return nil, 0, errQuotes
	}
	for _, w := range words {
		if len(w) > lim.bulk {
			return nil, 0, errInline
		}
	}
	if len(words) > lim.args {
		return nil, 0, errInline
	}
	return words, len(line) + 1, nil
}

var (
	blank    = regexp.MustCompile(`^[ \t-\r]+`)
	plain    = regexp.MustCompile(`^(?s:[^ \t\n\r"'])+`)
	double   = regexp.MustCompile(`^"((?s:[^"\\]|\\.)*)"`)
	single   = regexp.MustCompile(`^'((?s:\\'|[^'])*?)'`)
	escape   = regexp.MustCompile(`\\x[0-9a-fA-F]{2}|\\(?s:.)`)
	escapees = map[byte]string{'n': "\n", 'r': "\r", 't': "\t", 'b': "\b", 'a': "\a"}
)

// refSplit is sdssplitargs by regular expressions, over Latin-1 so that every
// byte is a character.
func refSplit(line string) (words []string, ok bool) {
	rest := latin1(line)
	for {
		rest = rest[len(blank.FindString(rest)):]
		if rest == "" {
			return words, true
		}
		word := plain.FindString(rest)
		rest = rest[len(word):]
		if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
			text, n := refQuoted(rest)
			if n == 0 {
				return nil, false
			}
			word += text
			if rest = rest[n:]; rest != "" && !blank.MatchString(rest) {
				return nil, false
			}
		}
		words = append(words, fromLatin1(word))
	}
}

func refQuoted(text string) (decoded string, n int) {
	if m := double.FindStringSubmatch(text); m != nil {
		return escape.ReplaceAllStringFunc(m[1], refUnescape), len(m[0])
	}
	// An escaped quote is never the closing one, so the shortest match that
	// honours that is the word.
	if m := single.FindStringSubmatch(text); m != nil {
		n := len(m[0])
		for strings.HasSuffix(text[:n], `\'`) {
			more := strings.IndexByte(text[n:], '\'')
			if more < 0 {
				return "", 0
			}
			n += more + 1
		}
		return strings.ReplaceAll(text[1:n-1], `\'`, `'`), n
	}
	return "", 0
}

func refUnescape(seq string) string {
	if len(seq) == 4 && seq[1] == 'x' {
		b, _ := strconv.ParseUint(seq[2:], 16, 8)
		return string(rune(b))
	}
	if plain, ok := escapees[seq[1]]; ok {
		return plain
	}
	return seq[1:]
}

func latin1(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

func fromLatin1(s string) string {
	var b bytes.Buffer
	for _, r := range s {
		b.WriteByte(byte(r))
	}
	return b.String()
}
