package server

// keepBytes is the maximum that a bufferCache keeps of each size: enough for two thousand
// connections that send one command at a time and all wait for the store.
const keepBytes = 8 << 20

// bufferCache holds the read buffers that no connection of an event loop uses. Its
// methods work on nil, as an empty cache.
type bufferCache struct {
	small, medium, large bufferList
}

// bufferList holds free buffers of one size.
type bufferList struct {
	free  [][]byte
	least int // minimum of len(free) since the last trim: these were not needed
}

// list returns the list for a size, or nil if buffers of this size are not cached.
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

// take returns a buffer of the given size.
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

// give returns a buffer to the cache. Nothing may alias it.
func (s *bufferCache) give(buf []byte) {
	if list := s.list(len(buf)); list != nil && len(list.free) < keepBytes/len(buf) {
		list.free = append(list.free, buf)
	}
}

// trim drops the buffers that were not needed since the last call.
func (s *bufferCache) trim() {
	for _, list := range []*bufferList{&s.small, &s.medium, &s.large} {
		left := len(list.free) - list.least
		clear(list.free[left:])
		list.free = list.free[:left]
		list.least = left
	}
}
