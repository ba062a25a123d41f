package commands_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// maxFuzzWords and maxFuzzBytes limit the comparison to the sizes that clients send.
const (
	maxFuzzWords = 12
	maxFuzzBytes = 1024
)

// FuzzAgainstRedis compares the types of the replies with those of a real server. A
// command is the lines of the first argument, followed by the words that the second one
// selects from all conversations and odd words. A command is sent only if both sides know
// it, or neither does, and if it can neither harm the server nor wait.
func FuzzAgainstRedis(f *testing.F) {
	r := newReference(f)
	var vocabulary [][]byte
	for _, word := range oddWords {
		vocabulary = append(vocabulary, []byte(word))
	}
	for _, line := range conversations {
		for _, cmd := range words(line) {
			for _, word := range cmd {
				if !slices.ContainsFunc(vocabulary, func(v []byte) bool { return bytes.Equal(v, word) }) {
					vocabulary = append(vocabulary, word)
				}
			}
			f.Add(bytes.Join(cmd, []byte("\n")), []byte(nil))
			f.Add(cmd[0], []byte{byte(len(vocabulary) - 1), byte(len(cmd[0]))})
		}
	}
	f.Fuzz(func(t *testing.T, line, picks []byte) {
		cmd := bytes.Split(line, []byte("\n"))
		for _, p := range picks {
			cmd = append(cmd, vocabulary[int(p)%len(vocabulary)])
		}
		setting := strings.EqualFold(string(cmd[0]), "config") && len(cmd) > 3
		if len(line) > maxFuzzBytes || len(cmd) > maxFuzzWords || setting || !r.askable(cmd) {
			return
		}
		r.check(t, cmd)
	})
}
