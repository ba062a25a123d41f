package server

import (
	"bytes"
	"io"
)

// smallBuffer is what a connection reads into at first and while it is quiet:
// there may be ten thousand of them.
const smallBuffer = 4 << 10

// mediumBuffer is the second size. What a connection holds beyond it, for a command that
// has not arrived completely, counts.
const mediumBuffer = 4 * smallBuffer

// readBuffer is what has arrived on a connection and is not yet answered. Its buffer
// grows with what has arrived, never with what was announced.
type readBuffer struct {
	buf       []byte
	next, end int           // buf[next:end] holds commands that were not collected
	size      int           // of the buffer that park or shrink gave away
	full      bool          // the last read filled buf: more is likely to wait
	parser    commandParser // of the command at next
	err       error         // why nothing after the collected commands can be read
	spare     *bufferCache
}

// pending says whether bytes wait to be collected, or to be completed.
func (in *readBuffer) pending() bool { return in.next < in.end }

// large says whether the input has room that a quiet connection should not keep.
func (in *readBuffer) large() bool {
	return max(len(in.buf), in.size) > smallBuffer || cap(in.parser.words) > smallWords
}

// collect moves the complete commands to b until it is full. An error comes
// after the commands before it, which are in b, and comes again when called
// again.
func (in *readBuffer) collect(b *batch, lim *parserBounds) error {
	for in.err == nil && in.pending() && !b.full(lim.unauthenticated) {
		rest := in.buf[in.next:in.end]
		done, err := in.parser.advance(rest, lim)
		switch {
		case err != nil:
			in.err = err
		case !done:
			return nil
		case isHTTPRequest(rest, in.parser.words):
			in.err = errHTTPRequest
		default:
			if len(in.parser.words) > 0 {
				b.add(rest[:in.parser.pos], in.parser.words)
			}
			in.next += in.parser.pos
			in.parser.reset()
		}
	}
	return in.err
}

// isHTTPRequest says whether a command is a line that only HTTP has.
func isHTTPRequest(command []byte, words []span) bool {
	if len(words) == 0 {
		return false
	}
	name := command[words[0].start:words[0].end]
	switch len(name) {
	case len("POST"):
		return bytes.EqualFold(name, []byte("POST"))
	case len("Host:"):
		return bytes.EqualFold(name, []byte("Host:"))
	default:
		return false
	}
}

// fill reads once. It must not be called while a batch aliases the buffer.
func (in *readBuffer) fill(r io.Reader) (int, error) {
	if in.next > 0 {
		in.end = copy(in.buf, in.buf[in.next:in.end])
		in.next = 0
	}
	if in.end == len(in.buf) || in.full || len(in.buf) < in.size {
		in.grow()
	}
	n, err := r.Read(in.buf[in.end:])
	in.end += n
	in.full = in.end == len(in.buf)
	return n, err
}

// grow makes room. Up to a batch's size in big steps: it is a pipeline. Beyond
// that only for one command that fills the buffer, whose length frame bounds.
func (in *readBuffer) grow() {
	size := max(len(in.buf), in.size)
	switch {
	case len(in.buf) < in.size && (!in.full || size == batchBytes):
	case size < batchBytes:
		size = min(max(4*size, smallBuffer), batchBytes)
	case in.end == size:
		size *= 2
	default:
		return
	}
	buf := in.spare.take(size)
	copy(buf, in.buf[:in.end])
	in.spare.give(in.buf)
	in.buf, in.size = buf, 0
}

// settle gives back room that only one huge command needed.
func (in *readBuffer) settle() {
	if len(in.buf) > batchBytes && !in.pending() {
		in.drop()
	}
}

// park gives the buffer of an input that has nothing pending to others, until the
// next read. It must not be called while a batch aliases the buffer.
func (in *readBuffer) park() {
	in.size = min(len(in.buf), batchBytes)
	in.spare.give(in.buf)
	in.buf, in.next, in.end = nil, 0, 0
}

// shrink moves the beginning of a command to a buffer of its size, until the next read.
// It must not be called while a batch aliases the buffer.
func (in *readBuffer) shrink() {
	rest := in.buf[in.next:in.end]
	for _, size := range [...]int{smallBuffer, mediumBuffer} {
		if len(rest) < size && size < len(in.buf) {
			buf := in.spare.take(size)
			in.size = min(len(in.buf), batchBytes)
			in.next, in.end = 0, copy(buf, rest)
			in.spare.give(in.buf)
			in.buf = buf
			return
		}
	}
}

// drop gives back the room of an input that has nothing pending.
func (in *readBuffer) drop() {
	in.parser.reset()
	if cap(in.parser.words) > smallWords {
		in.parser.words = nil
	}
	in.spare.give(in.buf)
	*in = readBuffer{parser: in.parser, spare: in.spare}
}
