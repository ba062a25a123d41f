package resp

import (
	"bytes"
	"fmt"
)

const (
	// maxLine bounds a line of a reply, in bytes.
	maxLine = maxErrorLine
	// maxPending bounds the elements of the arrays of a reply, nested ones included. The
	// largest reply has six for each of 64 limits of 256 calls, or two for each proxy that is
	// counted, or some for each range of hash slots.
	maxPending = 1 << 17
)

// Follower follows the lengths in the bytes of replies, in the pieces in which they arrive. It
// knows RESP2 and RESP3. It is not safe for concurrent use.
type Follower struct {
	first    byte  // of the current line; 0 at its begin
	negative bool  // the number in the current line has a sign
	number   int64 // in the current line, without its sign
	line     int   // the length of the current line
	skip     int64 // the bytes of a string, with its end, that are still to come
	pending  int64 // the elements of arrays that are still to come
}

// Follow follows the next bytes, and returns how many replies have ended in them. It returns an
// error that wraps ErrReply if a reply announces more than any reply to this program has.
func (f *Follower) Follow(b []byte) (ended int, err error) {
	for len(b) > 0 {
		if f.skip > 0 {
			n := min(f.skip, int64(len(b)))
			f.skip -= n
			b = b[n:]
		} else {
			n := bytes.IndexByte(b, '\n')
			if n < 0 {
				return ended, f.addPart(b)
			}
			if err := f.endLine(b[:n]); err != nil {
				return ended, err
			}
			b = b[n+1:]
		}
		if f.skip == 0 && f.pending == 0 {
			ended++
		}
	}
	return ended, nil
}

// addPart adds a part of a line.
func (f *Follower) addPart(part []byte) error {
	if f.line += len(part); f.line > maxLine {
		return fmt.Errorf("%w: a line of more than %d bytes", ErrReply, maxLine)
	}
	if f.first == 0 && len(part) > 0 {
		f.first, part = part[0], part[1:]
	}
	switch f.first {
	case ':', '+', '-': // no length
		return nil
	}
	for _, char := range part {
		switch {
		case char == '-':
			f.negative = true
		case char >= '0' && char <= '9' && f.number <= MaxBulk:
			f.number = f.number*10 + int64(char-'0')
		}
	}
	return nil
}

// endLine adds the last part of a line, and checks the length that the line has announced.
func (f *Follower) endLine(part []byte) error {
	if err := f.addPart(part); err != nil {
		return err
	}
	first, number := f.first, f.number
	if f.negative {
		number = -number
	}
	f.first, f.negative, f.number, f.line = 0, false, 0, 0
	f.pending = max(0, f.pending-1)
	switch first {
	case '$', '=', '!':
		if number > MaxBulk {
			return fmt.Errorf("%w: a string of more than %d bytes", ErrReply, MaxBulk)
		}
		if number >= 0 {
			f.skip = number + 2
		}
	case '*', '~', '>':
		f.pending += max(0, number)
	case '%', '|':
		f.pending += 2 * max(0, number)
	}
	if f.pending > maxPending {
		return fmt.Errorf("%w: more than %d elements", ErrReply, maxPending)
	}
	return nil
}
