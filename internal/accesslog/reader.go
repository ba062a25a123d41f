package accesslog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// MaxLine is the length in bytes, without the line ending, of the longest line
// a [Reader] parses: 64 KiB.
const MaxLine = 64 << 10

const (
	// lineBuffer holds a line and its ending, so that a full buffer without an
	// ending means that the line is too long.
	lineBuffer = MaxLine + len("\r\n")

	// rawBuffer is small because its bytes count as read: a small log should not seem to
	// be at its end from the beginning.
	rawBuffer = 8 << 10
)

// Reader reads the entries of an access log, one after the other, in about
// 200 KiB of memory however long the log and its lines are. Its methods are for
// one goroutine, except BytesRead.
type Reader struct {
	source  *countingReader
	lines   *bufio.Reader
	line    int      // The number of the line read last.
	length  int      // The length of the line read last.
	columns []string // The names in the last line #Fields:, nil before it.
	format  string   // The format of the entry read last, "" for Common or Combined Log Format.
	common  bool     // An entry was in one of these two.
	err     error    // The error that ended the reading, returned by all later calls.
}

// NewReader returns a Reader of the log r. A log that begins like gzip is
// decompressed, all members of it when several are concatenated; any other is
// read as it is. NewReader reads the beginning of r, and returns an error when
// that fails, or when the log is compressed in another way or is not what its
// first bytes promise. An empty log is no error. The caller closes r.
func NewReader(r io.Reader) (*Reader, error) {
	source := &countingReader{r: r}
	raw := bufio.NewReaderSize(source, rawBuffer)
	head, err := raw.Peek(10)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read log: %w", err)
	}
	if name := otherCompression(head); name != "" {
		return nil, fmt.Errorf("read log: the log is compressed with %s: want a plain or a gzip-compressed log, decompress it first", name)
	}
	if isUTF16(head) {
		return nil, errors.New("read log: the log is text in UTF-16: want UTF-8 (iconv -f UTF-16 -t UTF-8 makes that)")
	}
	text := io.Reader(raw)
	if bytes.HasPrefix(head, []byte(gzipMagic)) {
		text, err = gzip.NewReader(raw)
		if err != nil {
			return nil, readError(err)
		}
	}
	lines := bufio.NewReaderSize(text, lineBuffer)
	if twice, _ := lines.Peek(2); string(twice) == gzipMagic { // the first line reports an error of reading
		return nil, errors.New("read log: the log is compressed with gzip twice: want a plain or a gzip-compressed log, decompress it first")
	}
	if isTar(lines) {
		return nil, errors.New("read log: it is a tar archive: want one log (tar -xOf ARCHIVE writes those in it to standard output)")
	}
	return &Reader{source: source, lines: lines}, nil
}

// gzipMagic begins what gzip has compressed.
const gzipMagic = "\x1f\x8b"

// isTar reports whether text begins with the header of a file in an archive, of
// https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html.
func isTar(text *bufio.Reader) bool {
	const magic, at = "ustar", 257
	head, _ := text.Peek(at + len(magic)) // the first line reports an error of reading
	return len(head) == at+len(magic) && string(head[at:]) == magic
}

// otherCompression names the compression, other than gzip, of a file that
// begins with head, or is "". No log line begins like any of them.
func otherCompression(head []byte) string {
	for _, c := range []struct{ magic, name string }{
		{"\x28\xb5\x2f\xfd", "zstd"},
		{"\xfd7zXZ\x00", "xz"},
		{"BZh91AY&SY", "bzip2"},
		{"PK\x03\x04", "zip"},
	} {
		if bytes.HasPrefix(head, []byte(c.magic)) {
			return c.name
		}
	}
	return ""
}

// isUTF16 reports whether a file that begins with head is text in UTF-16: it has a mark of its order, or every
// other byte of its first letters is 0.
func isUTF16(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return true
	}
	return len(head) >= 4 && (head[0] == 0) != (head[1] == 0) && (head[0] == 0) == (head[2] == 0) && (head[1] == 0) == (head[3] == 0)
}

// Next returns the next entry, with its Line set. It skips blank lines, which
// count as lines nevertheless.
//
// It returns io.EOF at the end of the log, and a *[ParseError] for a line that
// is in no format of the package or is longer than [MaxLine]; calling
// Next again then goes on at the line after. Any other error is from reading or
// decompressing the log and final, and a line it cut short is not returned.
func (r *Reader) Next() (Entry, error) {
	for {
		line, err := r.nextLine()
		if err != nil {
			return Entry{}, err
		}
		if len(line) == 0 {
			continue
		}
		e, ok, err := r.parseLine(line)
		if err != nil {
			return Entry{}, &ParseError{Line: r.line, Text: excerpt(string(line)), Reason: err.Error()}
		}
		if !ok {
			continue
		}
		e.Line = r.line
		return e, nil
	}
}

// LineBytes is the length in bytes of the line that Next read last. The strings of its entry may
// hold as many in memory.
func (r *Reader) LineBytes() int { return r.length }

// BytesRead is the number of bytes read from the underlying reader so far, compressed
// ones if the log is compressed, for a [Progress]. It is ahead of the entries by the
// buffered data, up to 64 KiB of text and 8 KiB of compressed data, and at the end of the
// log is its size. It may be called concurrently with all methods.
func (r *Reader) BytesRead() int64 {
	return r.source.n.Load()
}

// nextLine returns the next line without its ending and trailing blanks, valid
// until the next call.
func (r *Reader) nextLine() ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	line, err := r.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.line++
		return nil, r.skipLongLine(line)
	}
	if err != nil {
		r.err = readError(err)
		// The last line of a log may lack its ending.
		if err != io.EOF || len(line) == 0 {
			return nil, r.err
		}
	}
	r.line++
	r.length = len(line)
	if length := len(trimEnding(line)); length > MaxLine {
		return nil, r.longLine(line)
	}
	return bytes.TrimRight(line, " \t\r\n"), nil
}

// skipLongLine reads to the end of the line that begins with head and returns
// the error for it.
func (r *Reader) skipLongLine(head []byte) error {
	long := r.longLine(head) // Before the buffer of head is overwritten.
	for {
		_, err := r.lines.ReadSlice('\n')
		if err == nil {
			return long
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			r.err = readError(err)
			return long
		}
	}
}

func (r *Reader) longLine(head []byte) *ParseError {
	return &ParseError{
		Line:   r.line,
		Text:   excerpt(string(head[:2*maxExcerpt])),
		Reason: fmt.Sprintf("the line is longer than %d bytes: want a text log with one request a line", MaxLine),
	}
}

// trimEnding removes the line ending, \n or \r\n.
func trimEnding(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// readError is err as Next and NewReader return it. Of io.EOF, it is io.EOF.
func readError(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read log: the data ends in the middle, the file is probably not complete: %w", err)
	case errors.Is(err, gzip.ErrHeader):
		return fmt.Errorf("read log: the file begins or goes on with bytes that are not gzip: %w", err)
	default:
		return fmt.Errorf("read log: %w", err)
	}
}

// countingReader counts what is read from r.
type countingReader struct {
	r io.Reader
	n atomic.Int64
}

// Read reads from the underlying reader.
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
