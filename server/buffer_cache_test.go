package server

import "testing"

// TestBufferCache: buffers are used again, bounded in number, and dropped when they are
// not needed for a while.
func TestBufferCache(t *testing.T) {
	var c bufferCache
	for _, size := range []int{smallBuffer, mediumBuffer, batchBytes} {
		first := c.take(size)
		c.give(first)
		if again := c.take(size); &again[0] != &first[0] || len(again) != size {
			t.Errorf("a buffer of %d bytes is not used again", size)
		}
		for range 2 * keepBytes / size {
			c.give(make([]byte, size))
		}
		if kept := len(c.list(size).free) * size; kept != keepBytes {
			t.Errorf("%d bytes are kept in buffers of %d", kept, size)
		}
		c.trim()
		needed := [][]byte{c.take(size), c.take(size)}
		c.give(needed[0])
		c.give(needed[1])
		c.trim()
		if kept := len(c.list(size).free); kept != 2 {
			t.Errorf("of buffers of %d bytes %d are kept, and 2 are needed", size, kept)
		}
		c.trim()
		if kept := len(c.list(size).free); kept != 0 {
			t.Errorf("of buffers of %d bytes %d are kept, and none is needed", size, kept)
		}
	}
	if c.give(make([]byte, 3*batchBytes)); c.list(3*batchBytes) != nil {
		t.Error("huge buffers are kept")
	}
}
