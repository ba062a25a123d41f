package server

import "bytes"

// parserBounds are the bounds that a command must keep, in bytes but for args.
type parserBounds struct {
	args, bulk, request, inline int
	// unauthenticated sets the stricter bounds of clients that have not authenticated.
	unauthenticated bool
}

// span is a stretch of a command, counted from the command's first byte.
type span struct{ start, end int }

// keepWords is how many words' room a frame keeps from command to command:
// 16 KiB, enough for the longest that the default options allow.
const keepWords = 1024

// smallWords is how many words' room a quiet connection keeps.
const smallWords = 32

// commandParser is how far one command has been checked. Its first byte is always at
// the start of what advance is given, so the bytes may move between calls. No
// byte is looked at twice, however small the pieces a command arrives in.
type commandParser struct {
	pos     int    // where what has not been understood begins
	seen    int    // no line ends between pos and here
	left    int    // words announced and not complete
	length  int    // of the word that is arriving; if inWord
	inWord  bool   // the length of the next word has been read
	words   []span // the complete ones
	counted bool   // the number of words has been read
}

func (f *commandParser) reset() {
	words := f.words[:0]
	if cap(words) > keepWords {
		words = nil
	}
	*f = commandParser{words: words}
}

// advance takes the check as far as b goes, where b begins with the command.
// Once done, pos is the command's length and words are its words; none means
// that there is nothing to run (an empty line, "*0", "*-1"). An inline command
// is decoded in place. Errors are protocolErrors; after one, call no more.
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
		if !f.inWord {
			if err := f.wordLength(b, lim); err != nil || !f.inWord {
				return false, err
			}
		}
		end := f.pos + f.length
		if len(b) < end+2 {
			return false, nil
		}
		// Redis skips these two bytes unseen. A client whose lengths are wrong is
		// better told at once than after its next words were taken for commands.
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

// count reads the line "*n".
func (f *commandParser) count(b []byte, lim *parserBounds) error {
	text, err := f.line(b, lim.inline, errCountLine, errCount)
	if text == nil {
		return err
	}
	n, ok := parseLength(text[1:])
	switch {
	case !ok || n > lim.args:
		return errCount
	case lim.unauthenticated && n > guestArgs:
		return errGuestCount
	}
	f.counted = true
	f.left = n // below zero means none
	return nil
}

// wordLength reads the line "$n". That the command fits is known here, before
// the word is kept.
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
	case lim.unauthenticated && n > guestBulk:
		return errGuestLength
	}
	f.length, f.inWord = n, true
	return nil
}

// line returns the line at pos without its CR LF and moves pos behind it, or
// nil while its end has not arrived.
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

// inline reads a command that is a line of words.
func (f *commandParser) inline(b []byte, lim *parserBounds) (done bool, err error) {
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

// maxDigits keeps parseLength from overflowing. Redis reads 19 digits, but all
// numbers of that length are out of its bounds.
const maxDigits = 18

// parseLength reads a decimal number as strictly as Redis does: no plus sign,
// no leading zero, no "-0".
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
