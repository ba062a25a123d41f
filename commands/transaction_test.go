package commands_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
)

// TestTransactionBound: what a connection keeps between MULTI and EXEC is bounded
// by what it costs, of words without a byte as well.
func TestTransactionBound(t *testing.T) {
	s := newSession(t, false)
	s.Serve(context.Background(), words("MULTI"), nil)
	long := [][]byte{[]byte("RL.CHECK")}
	for range 1023 {
		long = append(long, nil)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	queued := 0
	for range 1024 {
		reply, _ := s.Serve(context.Background(), [][][]byte{long}, nil)
		if strings.HasPrefix(string(reply), "+QUEUED") {
			queued++
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); queued == 0 || queued > 40 || kept > 4<<20 {
		t.Errorf("%d commands of 1,024 words were kept, in %d bytes", queued, kept)
	}
	if reply, _ := s.Serve(context.Background(), words("EXEC"), nil); !strings.HasPrefix(string(reply), "-EXECABORT") {
		t.Errorf("EXEC: %q", reply)
	}
}
