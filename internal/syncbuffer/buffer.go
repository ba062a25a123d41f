// Package syncbuffer has a buffer that tests read while other goroutines, such as those of a log, write
// to it.
package syncbuffer

import (
	"bytes"
	"sync"
)

// Buffer keeps what is written to it. The zero value is empty. It is safe for concurrent use.
type Buffer struct {
	mu     sync.Mutex // guards buffer
	buffer bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(text)
}

// String returns what was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
