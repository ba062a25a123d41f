package commands_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
)

// TestTransactionBound: the commands that a connection queues between MULTI and EXEC are
// bounded by the memory they take, also if their words are empty.
func TestTransactionBound(t *testing.T) {
	s := newSession(t, newHandler(t, handlerOptions{}))
	s.Serve(context.Background(), words("MULTI"), nil)
	long := [][]byte{[]byte("RL.CHECK")}
	for range 1023 {
		long = append(long, nil)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	queued, kept := 0, int64(0)
	for range 1024 {
		runtime.GC()
		runtime.ReadMemStats(&after)
		kept = max(kept, int64(after.HeapAlloc)-int64(before.HeapAlloc))
		reply, _, _ := s.Serve(context.Background(), [][][]byte{long}, nil)
		if !strings.HasPrefix(string(reply), "+QUEUED") {
			break
		}
		queued++
	}
	if queued == 0 || kept > 3<<19 {
		t.Errorf("%d commands of 1,024 words were kept, in %d bytes", queued, kept)
	}
	s.Serve(context.Background(), [][][]byte{long}, nil)
	if held := s.Held(); held != 0 {
		t.Errorf("of a transaction that EXEC will refuse %d bytes are kept", held)
	}
	if reply, _, _ := s.Serve(context.Background(), words("EXEC"), nil); !strings.HasPrefix(string(reply), "-EXECABORT") {
		t.Errorf("EXEC: %q", reply)
	}
}
