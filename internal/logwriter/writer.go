// Package logwriter writes the lines of a log without making the program wait for their reader: a
// pipe that is full must not hold up decisions, changes of files, or the end of the program.
package logwriter

import (
	"bytes"
	"context"
	"io"
	"sync/atomic"
	"time"
)

const (
	// maxLines bounds the lines that wait to be written, some hundred KiB.
	maxLines = 1024
	// maxWait is how long a writer of a line waits for room. A part of the program that writes
	// many lines then goes no faster than a slow reader, and the lines of others have room.
	maxWait = 10 * time.Millisecond
	// flushTime is how long Run writes lines at its end.
	flushTime = time.Second
)

// Writer is a writer of lines that another goroutine writes. It is safe for concurrent use.
type Writer struct {
	out     io.Writer
	lines   chan []byte
	omitted atomic.Int64
	// OnOmitted is called with the number of lines that found no room, when all others are
	// written. It may write a line. It is set before Run is called.
	OnOmitted func(lines int64)
}

// New returns a writer to out, which writes while Run runs.
func New(out io.Writer) *Writer { return &Writer{out: out, lines: make(chan []byte, maxLines)} }

// Write takes a line. It waits a moment if there is no room, and then omits the line. It never
// returns an error.
func (w *Writer) Write(line []byte) (int, error) {
	own := bytes.Clone(line)
	select {
	case w.lines <- own:
		return len(line), nil
	default:
	}
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case w.lines <- own:
	case <-timer.C:
		w.omitted.Add(1)
	}
	return len(line), nil
}

// Run writes lines until ctx ends, and then those that wait. It returns a moment later if they
// cannot be written; the goroutine that tries ends with the program then.
func (w *Writer) Run(ctx context.Context) error {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		w.write(stop)
	}()
	<-ctx.Done()
	close(stop)
	timer := time.NewTimer(flushTime)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	return nil
}

// write writes lines until stop is closed and no line waits.
func (w *Writer) write(stop <-chan struct{}) {
	for {
		select {
		case line := <-w.lines:
			w.writeLine(line)
			continue
		default:
		}
		select {
		case line := <-w.lines:
			w.writeLine(line)
		case <-stop:
			if len(w.lines) == 0 {
				return
			}
		}
	}
}

// writeLine writes a line. A log that cannot be written has no place for the error.
func (w *Writer) writeLine(line []byte) {
	_, _ = w.out.Write(line)
	if len(w.lines) > 0 || w.OnOmitted == nil { // its line might find no room
		return
	}
	if n := w.omitted.Swap(0); n > 0 {
		w.OnOmitted(n)
	}
}
