package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

// TestLogInput: a log is read whole from the standard input, a named pipe and a file.
func TestLogInput(t *testing.T) {
	text := strings.Repeat("a line of a log\n", 20_000)
	pipe, file := filepath.Join(t.TempDir(), "pipe"), filepath.Join(t.TempDir(), "file")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, []byte(text), 0o600) }()
	for path, size := range map[string]int{"-": 0, pipe: 0, file: len(text)} {
		in, n, err := openLog(t.Context(), &environment{stdin: iotest.HalfReader(strings.NewReader(text))}, path)
		if err != nil || n != int64(size) {
			t.Fatalf("%s: %d bytes, %v", path, n, err)
		}
		if b, err := io.ReadAll(in); err != nil || string(b) != text {
			t.Errorf("%s: %d bytes read, %v", path, len(b), err)
		}
		if err := in.Close(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	bad := errors.New("bad")
	in, _, _ := openLog(t.Context(), &environment{stdin: iotest.ErrReader(bad)}, "-")
	if _, err := io.ReadAll(in); !errors.Is(err, bad) {
		t.Errorf("an input that fails: %v", err)
	}
}

// zeros is an input that never ends.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// TestLogInterrupted: a signal ends the wait for a log that does not come, and for the writer of a named pipe.
func TestLogInterrupted(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	silent, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	for _, path := range []string{"-", pipe} {
		ctx, cancel := context.WithCancel(t.Context())
		in, _, err := openLog(ctx, &environment{stdin: silent}, path)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(10*time.Millisecond, cancel)
		if _, err := in.Read(make([]byte, 1)); !errors.Is(err, errLogInterrupted) {
			t.Errorf("%s: %v", path, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	endless, _, err := openLog(ctx, &environment{stdin: zeros{}}, "-")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for range 1000 {
		var n int
		if n, err = endless.Read(make([]byte, waitingChunk)); err != nil {
			break
		}
		if n == 0 {
			t.Fatal("a read of nothing without an error")
		}
	}
	if !errors.Is(err, errLogInterrupted) {
		t.Errorf("an endless input: %v", err)
	}
	// The goroutine that opens the pipe ends.
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
}
