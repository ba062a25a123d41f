package server

// splitWords appends the words of an inline command to words. It decodes them in place: a
// decoded word is never longer than its source. The rules are those of Redis'
// sdssplitargs: words are separated by white space; "..." may contain \n \r \t \b \a \xHH
// and escapes anything else, '...' only \'; a closing quote ends the word. It returns
// false when quotes are not balanced.
func splitWords(line []byte, words []span) ([]span, bool) {
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return words, true
		}
		word, next, ok := decodeWord(line, i)
		if !ok {
			return words, false
		}
		words = append(words, word)
		i = next
	}
}

// decodeWord decodes the word that begins at i and returns where the rest of
// the line begins.
func decodeWord(line []byte, i int) (word span, next int, ok bool) {
	word = span{i, i}
	for i < len(line) {
		switch c := line[i]; c {
		case ' ', '\n', '\r', '\t':
			return word, i, true
		case '"', '\'':
			word.end, i, ok = decodeQuoted(line, word.end, i)
			ok = ok && (i == len(line) || isSpace(line[i]))
			return word, i, ok
		default:
			line[word.end] = c
			word.end++
			i++
		}
	}
	return word, i, true
}

// decodeQuoted decodes the content of the quotes that open at i to out. It returns the
// end of the decoded content and where the rest of the line begins.
func decodeQuoted(line []byte, out, i int) (end, next int, ok bool) {
	quote := line[i]
	for i++; i < len(line); out++ {
		c, size := line[i], 1
		switch {
		case c == quote:
			return out, i + 1, true
		case c == '\\' && quote == '"':
			c, size = unescape(line[i:])
		case c == '\\' && i+1 < len(line) && line[i+1] == quote:
			c, size = quote, 2
		}
		line[out] = c
		i += size
	}
	return out, i, false
}

// unescape returns the character of the escape sequence at the start of text, and the
// length of the sequence.
func unescape(text []byte) (c byte, size int) {
	if len(text) < 2 {
		return '\\', 1
	}
	if text[1] == 'x' && len(text) >= 4 {
		high, ok1 := hexDigit(text[2])
		low, ok2 := hexDigit(text[3])
		if ok1 && ok2 {
			return high<<4 | low, 4
		}
	}
	switch c := text[1]; c {
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'b':
		return '\b', 2
	case 'a':
		return '\a', 2
	default:
		return c, 2
	}
}

func hexDigit(c byte) (value byte, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	default:
		return 0, false
	}
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
