package server

// keepBytes is how much a bufferCache keeps of each size: enough for two thousand
// connections that ask one thing at a time, and wait for the store at once.
const keepBytes = 8 << 20

// bufferCache has the read buffers that no connection of a loop needs just now. Its
// methods work on nil, as a cache that never has any.
type bufferCache struct {
	small, medium, large bufferList
}

// bufferList has buffers of one size.
type bufferList struct {
	free  [][]byte
	least int // of free since the last trim: so many were not needed
}

// list returns the buffers of a size, or nil if such are not kept.
func (s *bufferCache) list(size int) *bufferList {
	switch {
	case s == nil:
		return nil
	case size == smallBuffer:
		return &s.small
	case size == mediumBuffer:
		return &s.medium
	case size == batchBytes:
		return &s.large
	default:
		return nil
	}
}

// take returns a buffer.
func (s *bufferCache) take(size int) []byte {
	list := s.list(size)
	if list == nil || len(list.free) == 0 {
		return make([]byte, size)
	}
	last := len(list.free) - 1
	buf := list.free[last]
	list.free[last] = nil
	list.free = list.free[:last]
	list.least = min(list.least, last)
	return buf
}

// give takes a buffer back that nothing aliases.
func (s *bufferCache) give(buf []byte) {
	if list := s.list(len(buf)); list != nil && len(list.free) < keepBytes/len(buf) {
		list.free = append(list.free, buf)
	}
}

// trim lets go of the buffers that were not needed since it was called last.
func (s *bufferCache) trim() {
	for _, list := range []*bufferList{&s.small, &s.medium, &s.large} {
		left := len(list.free) - list.least
		clear(list.free[left:])
		list.free = list.free[:left]
		list.least = left
	}
}
