package load

import (
	"bytes"
	"errors"
	"fmt"
)

// Shape is the form of the replies to a request.
type Shape uint8

const (
	// Integer is one integer: above zero admits.
	Integer Shape = iota
	// Decision is the reply of RL.CHECK: five integers, the limit and the source.
	Decision
	// Throttle is the reply of CL.THROTTLE: five integers, of which the first is 0 if the
	// request is admitted.
	Throttle
)

// Tally counts replies.
type Tally struct {
	Replies  int64
	Admitted int64
	Denied   int64
	// Sources counts decisions by source.
	Sources []SourceCount
	// Errors counts error replies; FirstError is the first.
	Errors     int64
	FirstError string
}

// SourceCount is the number of decisions from a source.
type SourceCount struct {
	Source string
	Count  int64
}

// From returns the number of decisions from a source.
func (t *Tally) From(source string) int64 {
	for i := range t.Sources {
		if t.Sources[i].Source == source {
			return t.Sources[i].Count
		}
	}
	return 0
}

// Add adds the counts of another tally.
func (t *Tally) Add(o *Tally) {
	t.Replies += o.Replies
	t.Admitted += o.Admitted
	t.Denied += o.Denied
	t.Errors += o.Errors
	if t.FirstError == "" {
		t.FirstError = o.FirstError
	}
	for _, s := range o.Sources {
		t.countSource([]byte(s.Source), s.Count)
	}
}

// errShape means that a reply does not have the expected shape.
var errShape = errors.New("unexpected reply")

// count parses the reply at the start of b and counts it. It returns its size, or 0 when
// the reply is incomplete.
func (t *Tally) count(shape Shape, b []byte) (size int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	switch {
	case b[0] == '-':
		return t.countError(b)
	case shape == Integer:
		var admits bool
		if admits, size = readInteger(b); size > 0 {
			t.countVerdict(admits)
		}
	case shape == Throttle:
		var admits bool
		if admits, size = readThrottle(b); size > 0 {
			t.countVerdict(admits)
		}
	default:
		var d decision
		if d, size = readDecision(b); size > 0 {
			t.countVerdict(d.admits)
			t.countSource(d.source, 1)
		}
	}
	if size < 0 {
		return 0, fmt.Errorf("read reply %.80q: %w", b, errShape)
	}
	return size, nil
}

// countUpTo counts the complete replies at the start of b, up to most. It returns their
// number, and their size.
func (t *Tally) countUpTo(most int, shape Shape, b []byte) (n, size int, err error) {
	for n < most {
		one, err := t.count(shape, b[size:])
		if err != nil {
			return 0, 0, err
		}
		if one == 0 {
			break
		}
		size += one
		n++
	}
	return n, size, nil
}

func (t *Tally) countVerdict(admits bool) {
	t.Replies++
	if admits {
		t.Admitted++
	} else {
		t.Denied++
	}
}

func (t *Tally) countSource(source []byte, n int64) {
	for i := range t.Sources {
		if string(source) == t.Sources[i].Source {
			t.Sources[i].Count += n
			return
		}
	}
	t.Sources = append(t.Sources, SourceCount{Source: string(source), Count: n})
}

func (t *Tally) countError(b []byte) (size int, err error) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return 0, nil
	}
	t.Replies++
	t.Errors++
	if t.FirstError == "" {
		t.FirstError = string(bytes.TrimRight(b[1:end], "\r"))
	}
	return end + 1, nil
}

// The parsers below return a size of 0 for an incomplete reply, and of -1 for one of
// another shape.

// skipLine returns the end of the line that begins at i with the given byte: 0 if the
// line is incomplete, -1 if it begins with another byte.
func skipLine(b []byte, i int, first byte) int {
	if i >= len(b) {
		return 0
	}
	if b[i] != first {
		return -1
	}
	for i++; i < len(b); i++ {
		if b[i] == '\n' {
			return i + 1
		}
	}
	return 0
}

func readInteger(b []byte) (positive bool, size int) {
	size = skipLine(b, 0, ':')
	return size > 0 && b[1] >= '1' && b[1] <= '9', size
}

// throttleHead is the start of every reply of CL.THROTTLE.
const throttleHead = "*5\r\n"

func readThrottle(b []byte) (admits bool, size int) {
	if n := min(len(b), len(throttleHead)); string(b[:n]) != throttleHead[:n] {
		return false, -1
	}
	at := len(throttleHead)
	admits = at+1 < len(b) && b[at+1] == '0'
	for range 5 {
		if at = skipLine(b, at, ':'); at <= 0 {
			return false, at
		}
	}
	return admits, at
}

type decision struct {
	admits bool
	source []byte
}

// decisionHead is the start of every decision.
const decisionHead = "*7\r\n"

func readDecision(b []byte) (d decision, size int) {
	if n := min(len(b), len(decisionHead)); string(b[:n]) != decisionHead[:n] {
		return d, -1
	}
	at := len(decisionHead)
	if at+1 < len(b) {
		d.admits = b[at+1] == '1'
	}
	for range 5 {
		if at = skipLine(b, at, ':'); at <= 0 {
			return d, at
		}
	}
	for range 2 {
		if d.source, at = readBulk(b, at); at <= 0 {
			return d, at
		}
	}
	return d, at
}

// maxBulk is longer than any name in a decision.
const maxBulk = 1 << 12

func readBulk(b []byte, at int) (text []byte, end int) {
	begin := skipLine(b, at, '$')
	if begin <= 0 {
		return nil, begin
	}
	if begin-2 <= at+1 || b[begin-2] != '\r' {
		return nil, -1
	}
	n := 0
	for _, c := range b[at+1 : begin-2] {
		if c < '0' || c > '9' || n > maxBulk {
			return nil, -1
		}
		n = n*10 + int(c-'0')
	}
	if begin+n+2 > len(b) {
		return nil, 0
	}
	if b[begin+n] != '\r' {
		return nil, -1
	}
	return b[begin : begin+n], begin + n + 2
}
