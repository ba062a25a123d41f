package logwriter

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestOrder checks that all lines are written in their order, also those that wait at the end.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a line is omitted where the machine stands still for too long
		var out bytes.Buffer
		w := New(&out)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		var want strings.Builder
		line := make([]byte, 0, 64)
		for i := range 10 * maxLines {
			line = fmt.Appendln(line[:0], i) // the memory of a line is used again
			want.Write(line)
			if n, err := w.Write(line); n != len(line) || err != nil {
				t.Fatal(n, err)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if out.String() != want.String() {
			t.Errorf("%d bytes of %d, or another order", out.Len(), want.Len())
		}
	})
}

// TestBlocked checks that a reader that has stopped holds up no writer for long, and not the end,
// and that the omitted lines are counted when it goes on.
func TestBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, pipe := io.Pipe()
		w := New(pipe)
		w.OnOmitted = func(n int64) { _, _ = fmt.Fprintf(w, "omitted %d\n", n) }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		begin := time.Now()
		const more = 100
		for range maxLines + 1 + more { // one of them is being written
			_, _ = w.Write([]byte("line\n"))
			synctest.Wait()
		}
		if took := time.Since(begin); took > more*maxWait {
			t.Errorf("%d lines took %s", more, took)
		}
		var all sync.WaitGroup
		var text strings.Builder
		all.Go(func() { _, _ = io.CopyN(&text, reader, int64(len("line\n")*(maxLines+1)+len("omitted 100\n"))) })
		all.Wait()
		if !strings.Contains(text.String(), "omitted 100\n") || strings.Count(text.String(), "line\n") != maxLines+1 {
			t.Errorf("%d lines, and %q", strings.Count(text.String(), "line\n"), strings.ReplaceAll(text.String(), "line\n", ""))
		}
		_, _ = w.Write([]byte("the last one\n"))
		cancel()
		begin = time.Now()
		if err := <-done; err != nil || time.Since(begin) != flushTime {
			t.Errorf("the end took %s, %v", time.Since(begin), err)
		}
		_ = reader.Close() // ends the goroutine
	})
}
