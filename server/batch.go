package server

import "sync"

const (
	// batchBytes is the maximum input of a batch: about a thousand checks, so that a
	// pipeline costs one request to the store. The last command of a batch may exceed it.
	batchBytes = 64 << 10
	// batchCommands is the maximum number of commands in a batch.
	batchCommands = 1024
	// asyncCommands is the maximum number of commands passed to an AsyncSession at once.
	// The rest goes into the next batch, after the other connections' turn.
	asyncCommands = 64
	// largeReply is the size from which a reply is sent before the next command of its
	// batch is served. The replies held for one client are thus bounded by largeReply and
	// one more reply.
	largeReply = 64 << 10
	// keepReply is the largest reply buffer that a pooled batch keeps.
	keepReply = 2 * largeReply
)

// batch is a run of commands of one connection that are answered together.
type batch struct {
	cmds   [][][]byte
	words  [][]byte // backs cmds
	bytes  int
	most   int    // maximum number of commands
	served int    // number of commands that are answered
	reply  []byte // buffer for the reply
}

// spares pools batches: a connection needs one only while it is being answered.
var spares = sync.Pool{New: func() any { return new(batch) }}

func takeBatch() *batch {
	b := spares.Get().(*batch)
	b.most = batchCommands
	b.reply = b.reply[:0]
	return b
}

// drop removes the commands, so that the batch references no input.
func (b *batch) drop() {
	clear(b.cmds)
	clear(b.words)
	b.cmds, b.words, b.bytes, b.served = b.cmds[:0], b.words[:0], 0, 0
}

// release returns the batch to its pool.
func (b *batch) release() {
	b.drop()
	if cap(b.reply) > keepReply {
		b.reply = nil
	}
	spares.Put(b)
}

func (b *batch) empty() bool { return len(b.cmds) == 0 }

// left returns the commands that are not yet answered.
func (b *batch) left() [][][]byte { return b.cmds[b.served:] }

// full reports whether the batch takes no more commands. A batch of an unauthenticated
// client holds one: the bounds of the next command depend on whether this one
// authenticates the client.
func (b *batch) full(unauthenticated bool) bool {
	return b.bytes >= batchBytes || len(b.cmds) >= b.most || unauthenticated && !b.empty()
}

// add appends the command with these words. The batch aliases it.
func (b *batch) add(command []byte, words []span) {
	first := len(b.words)
	for _, w := range words {
		b.words = append(b.words, command[w.start:w.end:w.end])
	}
	b.cmds = append(b.cmds, b.words[first:len(b.words):len(b.words)])
	b.bytes += len(command)
}

// keepLong is the largest reply buffer kept for long commands, of which few run at a
// time.
const keepLong = 4 << 20

// longReplies pools reply buffers for long commands. Replies are copied out of them:
// growing a buffer to megabytes makes several times its size in garbage.
var longReplies = sync.Pool{New: func() any { return new([]byte) }}

// serveLong calls serve for a long command, with a pooled reply buffer.
func (b *batch) serveLong(serve func(out []byte) (reply []byte, served int, quit bool)) (reply []byte, served int, quit bool) {
	room := longReplies.Get().(*[]byte)
	made, served, quit := serve((*room)[:0])
	reply = append(b.reply, made...)
	if *room = made; cap(made) <= keepLong {
		longReplies.Put(room)
	}
	return reply, served, quit
}
