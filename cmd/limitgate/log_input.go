package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// errLogInterrupted is the error of a log that a signal ended while it was waited for.
var errLogInterrupted = errors.New("interrupted while waiting for more lines")

// openLog opens the log, and returns its size in bytes if that is known. Reading a log that is no regular file
// may wait for another program: it ends when ctx does.
func openLog(ctx context.Context, env *environment, path string) (io.ReadCloser, int64, error) {
	if path == "-" {
		return newWaitingReader(ctx, func() (io.Reader, error) { return env.stdin, nil }), 0, nil
	}
	if advice := fetchAdvice(path); advice != "" {
		return nil, 0, fmt.Errorf("open access log: %s", advice)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, fmt.Errorf("open access log: %w", err)
	}
	open := func() (io.Reader, error) { return os.Open(path) }
	if !info.Mode().IsRegular() {
		return newWaitingReader(ctx, open), 0, nil // opening a named pipe waits as well
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("open access log: %w", err)
	}
	return file, info.Size(), nil
}

// fetchAdvice says how to read a log at a URL, which is not repeated, as it may have a secret. It returns "" for a path.
func fetchAdvice(path string) string {
	fetch := "curl -sS URL"
	switch scheme, _, found := strings.Cut(path, "://"); {
	case !found:
		return ""
	case scheme == "file":
		return "a log is named by its path: leave out file://"
	case scheme == "s3":
		fetch = "aws s3 cp URL -"
	}
	return "it is a URL, and a log is a file, or - for standard input: " + fetch + " | limitgate ... -"
}

// waitingChunk is the size of the pieces that a waitingReader reads, in bytes.
const waitingChunk = 64 << 10

// waitingReader reads an input that may block, in a goroutine of its own. The goroutine ends with the input,
// or with the process: no call can interrupt it.
type waitingReader struct {
	ctx    context.Context
	chunks chan []byte // closed at the end of the input
	err    error       // of the input, once chunks is closed
	rest   []byte      // of the last chunk
}

// newWaitingReader returns a reader of what open returns, until ctx ends.
func newWaitingReader(ctx context.Context, open func() (io.Reader, error)) *waitingReader {
	r := &waitingReader{ctx: ctx, chunks: make(chan []byte)}
	go func() {
		defer close(r.chunks)
		in, err := open()
		for err == nil {
			var n int
			chunk := make([]byte, waitingChunk)
			n, err = in.Read(chunk)
			select {
			case r.chunks <- chunk[:n]:
			case <-ctx.Done():
				err = errLogInterrupted
			}
		}
		r.err = err
	}()
	return r
}

// Read implements io.Reader.
func (r *waitingReader) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		select {
		case <-r.ctx.Done():
			return 0, errLogInterrupted
		case chunk, more := <-r.chunks:
			if !more {
				return 0, r.err
			}
			r.rest = chunk
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close implements io.Closer. The input ends with the process.
func (r *waitingReader) Close() error { return nil }
