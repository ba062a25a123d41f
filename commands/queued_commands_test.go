package commands

import (
	"bytes"
	"slices"
	"testing"
)

// FuzzQueuedCommands: a queue returns commands unchanged, also after it has rejected one.
// A byte of 0xff ends a word and one of 0xfe a command.
func FuzzQueuedCommands(f *testing.F) {
	f.Add([]byte("RL.CHECK\xfftenant\xff\xff-\xfePING\xfe\xfe"))
	f.Add(bytes.Repeat([]byte("\xff\xff\xfe"), maxQueued+1))
	f.Add(bytes.Repeat([]byte(string(bytes.Repeat([]byte("w"), 200))+"\xff"), 300))
	f.Fuzz(func(t *testing.T, text []byte) {
		var q queuedCommands
		var want [][][]byte
		for _, command := range bytes.Split(text, []byte{0xfe}) {
			args := bytes.Split(command, []byte{0xff})
			if q.add(args) {
				want = append(want, args)
			}
		}
		i := 0
		for args := range q.all() {
			if i == len(want) {
				t.Fatalf("command %d: %q, and %d were added", i, args, len(want))
			}
			if !slices.EqualFunc(args, want[i], bytes.Equal) {
				t.Fatalf("command %d: %q, want %q", i, args, want[i])
			}
			i++
		}
		if i != len(want) || i != q.count {
			t.Fatalf("%d commands of %d, and the count is %d", i, len(want), q.count)
		}
	})
}

// TestQueuedCommandsAreCopies: the words of a command may be overwritten once it is added.
func TestQueuedCommandsAreCopies(t *testing.T) {
	var q queuedCommands
	word := []byte("PING")
	for range maxQueued {
		if !q.add([][]byte{word, nil}) {
			t.Fatal("a short command is refused")
		}
	}
	if q.add([][]byte{word}) {
		t.Error("more than maxQueued commands are kept")
	}
	copy(word, "????")
	for args := range q.all() {
		if string(args[0]) != "PING" || len(args) != 2 || len(args[1]) != 0 {
			t.Fatalf("%q comes back", args)
		}
	}
	if large := (&queuedCommands{}); large.add([][]byte{make([]byte, maxQueuedBytes)}) {
		t.Error("a command larger than maxQueuedBytes is kept")
	}
}
