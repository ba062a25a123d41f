package resp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	// replyBuffer is the initial size of the buffer: the reply to a full batch fits.
	replyBuffer = 16 << 10
	// keepBuffer is the largest size at which the buffer is kept.
	keepBuffer = 256 << 10
	// maxReplyLine bounds a line of a reply. The rest of an error's line is dropped, up to
	// maxErrorLine: it may contain a key, which takes at most 16 KiB.
	maxReplyLine = 4 << 10
	maxErrorLine = 64 << 10
	// MaxBulk bounds a string in a reply, in bytes. The longest holds the keys of a request's
	// buckets: at most 64, of 16 KiB each.
	MaxBulk = 2 << 20
	// maxReplyWords and maxReplyDepth bound replies other than decisions: the longest is
	// that to ROLE, with three words for each replica.
	maxReplyWords = 4096
	maxReplyDepth = 3
)

// Reader reads the RESP2 replies of a node. It is not safe for concurrent use.
type Reader struct {
	source io.Reader
	buf    []byte
	r, w   int
	// BeforeRead, unless nil, is called before a read, which may block.
	BeforeRead func()
	// OnTimeout is called when a read times out. If it is nil or returns nil, the reader
	// goes on waiting.
	OnTimeout func() error
}

// NewReader returns a reader of replies from source.
func NewReader(source io.Reader) *Reader {
	return &Reader{source: source, buf: make([]byte, replyBuffer)}
}

// Fill reads some bytes into the buffer, in addition to those that are buffered. The error is
// that of the source, or of OnTimeout.
func (in *Reader) Fill() error {
	switch {
	case in.r == in.w:
		in.r, in.w = 0, 0
		if len(in.buf) > keepBuffer { // drops the large buffer of a rare long string
			in.buf = make([]byte, replyBuffer)
		}
	case in.w == len(in.buf):
		if in.r == 0 {
			in.buf = append(in.buf, make([]byte, len(in.buf))...)
		}
		in.w = copy(in.buf, in.buf[in.r:in.w])
		in.r = 0
	}
	if in.BeforeRead != nil {
		in.BeforeRead()
	}
	for {
		n, err := in.source.Read(in.buf[in.w:])
		in.w += n
		switch {
		case n > 0:
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded) && in.OnTimeout != nil:
			err = in.OnTimeout()
		}
		if err != nil {
			return err
		}
	}
}

// Await waits for the first byte of a reply.
func (in *Reader) Await() error {
	if in.r < in.w {
		return nil
	}
	return in.Fill()
}

// Buffered returns the bytes that were received and not read yet. They are valid until the
// next read.
func (in *Reader) Buffered() []byte { return in.buf[in.r:in.w] }

// Line returns the next line without its end. It is valid until the next read.
func (in *Reader) Line() ([]byte, error) {
	for from := 0; ; {
		if i := bytes.IndexByte(in.buf[in.r+from:in.w], '\n'); i >= 0 {
			line := in.buf[in.r : in.r+from+i]
			in.r += from + i + 1
			if len(line) < 2 || line[len(line)-1] != '\r' {
				return nil, ErrReply
			}
			return line[:len(line)-1], nil
		}
		from = in.w - in.r
		if from > maxReplyLine {
			if in.buf[in.r] == '-' {
				return in.longError()
			}
			return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrReply, maxReplyLine)
		}
		if err := in.Fill(); err != nil {
			return nil, err
		}
	}
}

// longError returns the beginning of an error's line and drops the rest: it may contain
// long names.
func (in *Reader) longError() ([]byte, error) {
	line := bytes.Clone(in.buf[in.r : in.r+maxReplyLine])
	for dropped := 0; dropped <= maxErrorLine; {
		if i := bytes.IndexByte(in.buf[in.r:in.w], '\n'); i >= 0 {
			in.r += i + 1
			return line, nil
		}
		dropped += in.w - in.r
		in.r = in.w
		if err := in.Fill(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrReply, maxErrorLine)
}

// Array reads the length of an array. An error reply in its place is returned as an
// Error.
func (in *Reader) Array() (int, error) {
	line, err := in.Line()
	if err != nil {
		return 0, err
	}
	switch line[0] {
	case '*':
		n, ok := ParseNumber(line[1:])
		if !ok || n < 0 || n > 1<<20 {
			return 0, ErrReply
		}
		return int(n), nil
	case '-':
		return 0, Error(line[1:])
	default:
		return 0, ErrReply
	}
}

// Integer reads an integer. A text reply in its place is returned as an Error.
func (in *Reader) Integer() (int64, error) {
	line, err := in.Line()
	if err != nil {
		return 0, err
	}
	switch line[0] {
	case ':':
		n, ok := ParseNumber(line[1:])
		if !ok {
			return 0, ErrNumber
		}
		return n, nil
	case '$', '-':
		text, err := in.text(line)
		if err != nil {
			return 0, err
		}
		return 0, Error(text)
	default:
		return 0, ErrReply
	}
}

// text reads a string, or an error in its place. line is its first line.
func (in *Reader) text(line []byte) (string, error) {
	switch line[0] {
	case '+':
		return string(line[1:]), nil
	case '-':
		return string(line[1:]), nil
	case '$':
	default:
		return "", ErrReply
	}
	n, ok := ParseNumber(line[1:])
	if !ok || n < 0 || n > MaxBulk {
		return "", ErrReply
	}
	need := int(n) + 2
	for in.w-in.r < need {
		if err := in.Fill(); err != nil {
			return "", err
		}
	}
	s := string(in.buf[in.r : in.r+int(n)])
	in.r += need
	return s, nil
}

// ParseNumber parses a decimal number of up to 18 digits.
func ParseNumber(b []byte) (int64, bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	n := int64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// StartsWith reports whether the next reply begins with prefix, which is shorter than any
// reply.
func (in *Reader) StartsWith(prefix string) (bool, error) {
	for in.w-in.r < 4 {
		if err := in.Fill(); err != nil {
			return false, err
		}
	}
	if in.buf[in.r] != prefix[0] {
		return false, nil
	}
	for in.w-in.r < len(prefix) {
		if bytes.IndexByte(in.buf[in.r:in.w], '\n') >= 0 {
			return false, nil
		}
		if err := in.Fill(); err != nil {
			return false, err
		}
	}
	return string(in.buf[in.r:in.r+len(prefix)]) == prefix, nil
}

// Strings reads a reply of nested arrays, strings and numbers. It returns its strings and
// numbers in order. An error reply is returned as an Error.
func (in *Reader) Strings() ([]string, error) { return in.appendStrings(nil, maxReplyDepth) }

// appendStrings is Strings for a reply with arrays nested up to depth.
func (in *Reader) appendStrings(words []string, depth int) ([]string, error) {
	line, err := in.Line()
	if err != nil {
		return nil, err
	}
	if len(words) == maxReplyWords {
		return nil, ErrReply
	}
	switch line[0] {
	case '-':
		return nil, Error(line[1:])
	case ':':
		return append(words, string(line[1:])), nil
	case '*':
		n, ok := ParseNumber(line[1:])
		if !ok || depth == 0 || n > maxReplyWords {
			return nil, ErrReply
		}
		for range n {
			if words, err = in.appendStrings(words, depth-1); err != nil {
				return nil, err
			}
		}
		return words, nil
	default:
		if string(line) == "$-1" {
			return words, nil
		}
		word, err := in.text(line)
		if err == nil && len(word) > maxReplyLine {
			err = ErrReply
		}
		return append(words, word), err
	}
}
