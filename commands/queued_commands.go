package commands

import (
	"encoding/binary"
	"iter"
)

// queuedCommands are the commands between MULTI and EXEC, in one string: of each command
// the number of its words, and of each word its length and its bytes, the numbers as
// varints. A transaction of a thousand checks takes a fifth of the memory of a slice for
// every word, and has no pointers for the garbage collector to follow.
//
// The zero value is empty.
type queuedCommands struct {
	encoded []byte
	count   int
	words   int // of the command with the most words
}

// size returns how many bytes the commands occupy.
func (q *queuedCommands) size() int { return cap(q.encoded) }

// add adds a copy of a command, and returns false when there is no room.
func (q *queuedCommands) add(args [][]byte) bool {
	size := binary.MaxVarintLen32
	for _, a := range args {
		size += binary.MaxVarintLen32 + len(a)
	}
	if q.count == maxQueued || len(q.encoded)+size > maxQueuedBytes {
		return false
	}
	q.encoded = binary.AppendUvarint(q.encoded, uint64(len(args)))
	for _, a := range args {
		q.encoded = binary.AppendUvarint(q.encoded, uint64(len(a)))
		q.encoded = append(q.encoded, a...)
	}
	q.count++
	q.words = max(q.words, len(args))
	return true
}

// all returns the commands in order. Each is valid until the next one, and its words are
// valid as long as the queue.
func (q *queuedCommands) all() iter.Seq[[][]byte] {
	return func(yield func([][]byte) bool) {
		args, rest := make([][]byte, 0, q.words), q.encoded
		for len(rest) > 0 {
			words, n := binary.Uvarint(rest)
			rest, args = rest[n:], args[:0]
			for range words {
				length, n := binary.Uvarint(rest)
				end := n + int(length)
				args, rest = append(args, rest[n:end:end]), rest[end:]
			}
			if !yield(args) {
				return
			}
		}
	}
}
