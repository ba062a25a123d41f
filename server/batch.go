package server

import "sync"

const (
	// batchBytes is how much input one batch holds: some thousand checks, so that
	// a pipeline costs the store one trip. A batch may pass it by its last command.
	batchBytes = 64 << 10
	// batchCommands bounds the words of a batch.
	batchCommands = 1024
	// asyncCommands is how many a session is asked at once that answers without
	// waiting: more come in the next batch, behind others' turn.
	asyncCommands = 64
	// largeReply is the size from which a reply is sent before the next command of
	// its batch is served. What waits for one client is thus this and one more reply.
	largeReply = 64 << 10
	// keepReply is how much room for replies a spare batch keeps.
	keepReply = 2 * largeReply
)

// batch is a run of commands of one connection that are answered together.
type batch struct {
	cmds   [][][]byte
	words  [][]byte // backs cmds
	bytes  int
	most   int    // commands it takes
	served int    // commands that are answered
	reply  []byte // room to answer in
}

// spares are batches without an owner: a connection needs one only while it is
// being answered.
var spares = sync.Pool{New: func() any { return new(batch) }}

func takeBatch() *batch {
	b := spares.Get().(*batch)
	b.most = batchCommands
	b.reply = b.reply[:0]
	return b
}

// release forgets the commands, so that a spare batch holds on to no input.
func (b *batch) release() {
	clear(b.cmds)
	clear(b.words)
	b.cmds, b.words, b.bytes, b.served = b.cmds[:0], b.words[:0], 0, 0
	if cap(b.reply) > keepReply {
		b.reply = nil
	}
	spares.Put(b)
}

func (b *batch) empty() bool { return len(b.cmds) == 0 }

// left returns the commands that are not answered.
func (b *batch) left() [][][]byte { return b.cmds[b.served:] }

// full says whether the batch takes no more commands. A guest's holds one: the
// bounds of the next depend on whether this one authenticates him.
func (b *batch) full(guest bool) bool {
	return b.bytes >= batchBytes || len(b.cmds) >= b.most || guest && !b.empty()
}

// add appends the command that has these words. The batch aliases it.
func (b *batch) add(command []byte, words []span) {
	first := len(b.words)
	for _, w := range words {
		b.words = append(b.words, command[w.start:w.end:w.end])
	}
	b.cmds = append(b.cmds, b.words[first:len(b.words):len(b.words)])
	b.bytes += len(command)
}

// keepLong is how much room for the reply to a long command is kept: there are few of
// them at a time.
const keepLong = 4 << 20

// longReplies have room for the replies to long commands, which are copied from there:
// to grow one to megabytes costs several times as much garbage as it has bytes.
var longReplies = sync.Pool{New: func() any { return new([]byte) }}

// serveLong has a session serve a long command.
func (b *batch) serveLong(serve func(out []byte) (reply []byte, served int, quit bool)) (reply []byte, served int, quit bool) {
	room := longReplies.Get().(*[]byte)
	made, served, quit := serve((*room)[:0])
	reply = append(b.reply, made...)
	if *room = made; cap(made) <= keepLong {
		longReplies.Put(room)
	}
	return reply, served, quit
}
