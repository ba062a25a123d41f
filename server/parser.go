package server

import "bytes"

// parserBounds are the bounds of a command, in bytes except for args.
type parserBounds struct {
	args, bulk, request, inline int
	// unauthenticated sets the stricter bounds of clients that have not authenticated.
	unauthenticated bool
}

// span is a range of a command, relative to the command's first byte.
type span struct{ start, end int }

// keepWords is the capacity of words that a commandParser keeps between commands: 16 KiB,
// enough for the longest command that the default options allow.
const keepWords = 1024

// smallWords is the capacity of words that a quiet connection keeps.
const smallWords = 32

// commandParser is the state of parsing one command. The command's first byte is always
// at the start of the slice passed to advance, so the bytes may move between calls. No
// byte is looked at twice, however small the pieces in which a command arrives.
type commandParser struct {
	pos     int    // start of the part that is not parsed
	seen    int    // no line ends between pos and here
	left    int    // words announced and not complete
	length  int    // of the word that is arriving, if inWord
	inWord  bool   // the length of the next word has been read
	words   []span // the complete words
	counted bool   // the number of words has been read
}

func (f *commandParser) reset() {
	words := f.words[:0]
	if cap(words) > keepWords {
		words = nil
	}
	*f = commandParser{words: words}
}

// advance continues parsing with b, which begins with the command. When done is true, pos
// is the command's length and words are its words; without words there is nothing to run
// (an empty line, "*0", "*-1"). An inline command is decoded in place. Errors are
// protocolErrors or errTLSHandshake; after an error advance must not be called again.
func (f *commandParser) advance(b []byte, lim *parserBounds) (done bool, err error) {
	if len(b) == 0 {
		return false, nil
	}
	if b[0] != '*' {
		return f.inline(b, lim)
	}
	if !f.counted {
		if err := f.count(b, lim); err != nil || !f.counted {
			return false, err
		}
	}
	for f.left > 0 {
		if n, size := shortLength(b[f.pos:]); !f.inWord && size > 0 && n <= lim.bulk && f.pos+size+n+2 <= lim.request {
			f.pos += size
			f.length, f.inWord = n, true
		}
		if !f.inWord {
			if err := f.wordLength(b, lim); err != nil || !f.inWord {
				return false, err
			}
		}
		end := f.pos + f.length
		if len(b) < end+2 {
			return false, nil
		}
		// Redis skips these two bytes unchecked. For a client with wrong lengths, an
		// error here is better than having its next words taken for commands.
		if b[end] != '\r' || b[end+1] != '\n' {
			return false, errLength
		}
		f.words = append(f.words, span{f.pos, end})
		f.pos, f.seen = end+2, end+2
		f.inWord = false
		f.left--
	}
	return true, nil
}

// count parses the line "*n".
func (f *commandParser) count(b []byte, lim *parserBounds) error {
	text, err := f.line(b, lim.inline, errCountLine, errCount)
	if text == nil {
		return err
	}
	n, ok := parseLength(text[1:])
	switch {
	case !ok || n > lim.args:
		return errCount
	case lim.unauthenticated && n > unauthenticatedArgs:
		return errUnauthenticatedCount
	}
	f.counted = true
	f.left = n // below zero means none
	return nil
}

// wordLength parses the line "$n". It checks that the command fits its bounds before the
// word is stored.
func (f *commandParser) wordLength(b []byte, lim *parserBounds) error {
	text, err := f.line(b, lim.inline, errLengthLine, errLength)
	if text == nil {
		return err
	}
	if len(text) == 0 {
		return expectedDollar('\r')
	}
	if text[0] != '$' {
		return expectedDollar(text[0])
	}
	n, ok := parseLength(text[1:])
	switch {
	case !ok || n < 0 || n > lim.bulk || f.pos+n+2 > lim.request:
		return errLength
	case lim.unauthenticated && n > unauthenticatedBulk:
		return errUnauthenticatedLength
	}
	f.length, f.inWord = n, true
	return nil
}

// shortLength returns the length of a word of less than a hundred bytes, as most are, and the size of
// its line, or 0 if b does not begin with such a line.
func shortLength(b []byte) (n, size int) {
	if len(b) < 5 || b[0] != '$' || b[1] < '0' || b[1] > '9' {
		return 0, 0
	}
	n = int(b[1] - '0')
	switch {
	case b[2] == '\r' && b[3] == '\n':
		return n, 4
	case n > 0 && b[2] >= '0' && b[2] <= '9' && b[3] == '\r' && b[4] == '\n':
		return n*10 + int(b[2]-'0'), 5
	}
	return 0, 0
}

// line returns the line at pos without its CR LF and moves pos behind it, or returns nil
// if the end of the line has not arrived.
func (f *commandParser) line(b []byte, most int, tooLong, malformed protocolError) ([]byte, error) {
	// Such lines are short: a loop finds their end faster than bytes.IndexByte.
	for f.seen < len(b) && b[f.seen] != '\r' {
		f.seen++
	}
	switch {
	case f.seen-f.pos > most:
		return nil, tooLong
	case f.seen+1 >= len(b):
		return nil, nil
	case b[f.seen+1] != '\n':
		return nil, malformed
	}
	text := b[f.pos:f.seen]
	f.pos, f.seen = f.seen+2, f.seen+2
	return text, nil
}

// inline parses a command that is a line of words.
func (f *commandParser) inline(b []byte, lim *parserBounds) (done bool, err error) {
	if isTLSHandshake(b) {
		return false, errTLSHandshake
	}
	i := bytes.IndexByte(b[f.seen:], '\n')
	if i < 0 {
		i = len(b) - f.seen
	}
	f.seen += i
	switch {
	case f.seen > lim.inline:
		return false, errInline
	case f.seen == len(b):
		return false, nil
	}
	var ok bool
	f.words, ok = splitWords(bytes.TrimSuffix(b[:f.seen], []byte{'\r'}), f.words)
	if !ok {
		return false, errQuotes
	}
	if len(f.words) > lim.args {
		return false, errInline
	}
	for _, w := range f.words {
		if w.end-w.start > lim.bulk {
			return false, errInline
		}
	}
	f.pos = f.seen + 1
	return true, nil
}

// maxDigits keeps parseLength from overflowing. Redis accepts 19 digits, but all numbers
// of that length exceed its bounds.
const maxDigits = 18

// parseLength parses a decimal number as strictly as Redis does: no plus sign, no leading
// zero, no "-0".
func parseLength(text []byte) (n int, ok bool) {
	if len(text) == 1 && text[0] == '0' {
		return 0, true
	}
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	if len(text) == 0 || len(text) > maxDigits || text[0] == '0' {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}
