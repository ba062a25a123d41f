package syncbuffer

import (
	"strings"
	"sync"
	"testing"
)

// TestBuffer checks that nothing of several writers is lost or mixed, and that what was read stays as it
// is. Under the race detector it checks the lock too.
func TestBuffer(t *testing.T) {
	const writers, lines = 4, 100
	var b Buffer
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range lines {
				if n, err := b.Write([]byte("a line\n")); n != 7 || err != nil {
					t.Errorf("written: %d, %v", n, err)
				}
				if !strings.HasPrefix(b.String(), "a line\n") {
					t.Error("a writer does not read its own line")
				}
			}
		})
	}
	all.Wait()
	before := b.String()
	_, _ = b.Write([]byte("the end\n"))
	if want := strings.Repeat("a line\n", writers*lines); before != want || b.String() != want+"the end\n" {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
