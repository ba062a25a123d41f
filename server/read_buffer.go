package server

import "io"

// smallBuffer is the size of the buffer that a connection has at first and while it is
// quiet: there may be ten thousand of them.
const smallBuffer = 4 << 10

// mediumBuffer is the second size. Memory that a connection holds beyond it, for an
// incomplete command, is counted.
const mediumBuffer = 4 * smallBuffer

// readBuffer holds input that has arrived on a connection and is not yet answered. Its
// buffer grows with the input that has arrived, never with an announced length.
type readBuffer struct {
	buf       []byte
	next, end int           // buf[next:end] holds the input that is not collected
	size      int           // of the buffer that park or shrink released
	full      bool          // the last read filled buf: more input is likely
	parser    commandParser // of the command at next
	complete  bool          // the parser has all of that command
	err       error         // why no input after the collected commands can be read
	spare     *bufferCache
}

// pending reports whether there are bytes to collect or to complete.
func (in *readBuffer) pending() bool { return in.next < in.end }

// large reports whether the buffers are larger than a quiet connection should keep.
func (in *readBuffer) large() bool {
	return max(len(in.buf), in.size) > smallBuffer || cap(in.parser.words) > smallWords
}

// collect moves the complete commands to b until it is full. An error is returned after
// the commands before it are in b, and again by later calls.
func (in *readBuffer) collect(b *batch, lim *parserBounds) error {
	for !b.full(lim.unauthenticated) && in.parse(lim) {
		rest := in.buf[in.next:in.end]
		if isHTTPRequest(rest, in.parser.words) {
			in.err = errHTTPRequest
			break
		}
		if len(in.parser.words) > 0 {
			b.add(rest[:in.parser.pos], in.parser.words)
		}
		in.skip()
	}
	return in.err
}

// parse parses the command at next, and reports whether all of it has arrived.
func (in *readBuffer) parse(lim *parserBounds) bool {
	if in.err != nil || !in.pending() {
		return false
	}
	if !in.complete {
		in.complete, in.err = in.parser.advance(in.buf[in.next:in.end], lim)
	}
	return in.complete
}

// command appends the words of the complete command at next. They alias the buffer.
func (in *readBuffer) command(words [][]byte) [][]byte {
	for _, w := range in.parser.words {
		words = append(words, in.buf[in.next+w.start:in.next+w.end:in.next+w.end])
	}
	return words
}

// skip moves next behind the complete command.
func (in *readBuffer) skip() {
	in.next += in.parser.pos
	in.parser.reset()
	in.complete = false
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

// grow enlarges the buffer. Up to a batch's size it grows in big steps, for a pipeline;
// beyond that only for one command that fills the buffer, whose length the parser bounds.
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

// settle releases memory that only one huge command needed.
func (in *readBuffer) settle() {
	if len(in.buf) > batchBytes && !in.pending() {
		in.drop()
	}
}

// park releases the buffer of an input with nothing pending, until the next read. It must
// not be called while a batch aliases the buffer.
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

// drop releases the buffers of an input with nothing pending.
func (in *readBuffer) drop() {
	in.parser.reset()
	if cap(in.parser.words) > smallWords {
		in.parser.words = nil
	}
	in.spare.give(in.buf)
	*in = readBuffer{parser: in.parser, spare: in.spare}
}
