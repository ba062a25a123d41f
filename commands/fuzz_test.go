package commands_test

import (
	"bytes"
	"context"
	"testing"
)

// decisions are the commands that ask for a decision, or settle one.
var decisions = []string{
	"RL.CHECK", "CL.THROTTLE", "gcra", "Throttle", "RL.PEEK", "RL.REFUND", "RL.RESERVE", "RL.ACQUIRE",
	"rl.commit", "Rl.Cancel", "RL.RENEW", "RL.RELEASE",
}

// FuzzDecisions sends any words to each command that asks for a decision, alone and after
// a check: none of them may panic, and each gets exactly one reply, which is a decision
// or an error.
func FuzzDecisions(f *testing.F) {
	for _, words := range []string{
		"acme\x00GET\x00192.0.2.1\x001\x00DIM\x00user\x00u1\x00ID\x00a\x00HEADERS", "k\x004\x001\x001\x00-1",
		"k\x001\x001\x001e11\x00TOKENS\x009223372036854775807", "k\x00NaN\x001\x00Inf", "\x00\x00\x00\x00", "-\x00-\x00-\x000x1p9",
	} {
		for kind := range byte(len(decisions)) {
			f.Add(kind, words)
		}
	}
	for _, words := range []string{
		"acme\x00GET\x00192.0.2.1\x0020\x00TTL\x003600000\x00ID\x00a\x00DIM\x00user\x00u1", "r;acme;a\x005", "a;acme;a\x00TTL\x005",
		"ID\x00a\x00TENANT\x00acme\x007", "n;%7B;%", "r;;;\x000", "t\x00-\x00-\x00ID\x00x\x00TTL\x001",
	} {
		for kind := range byte(len(decisions)) {
			f.Add(kind, words)
		}
	}
	check := [][]byte{[]byte("RL.CHECK"), []byte("free"), []byte("-"), []byte("-")}
	f.Fuzz(func(t *testing.T, kind byte, words string) {
		s := newSession(t, newHandler(t, handlerOptions{}))
		cmd := [][]byte{[]byte(decisions[int(kind)%len(decisions)])}
		cmd = append(cmd, bytes.Split([]byte(words), []byte{0})...)
		alone, _, quit := s.Serve(context.Background(), [][][]byte{cmd}, nil)
		if quit || len(alone) == 0 || bytes.IndexByte([]byte("*:-"), alone[0]) < 0 {
			t.Fatalf("%q is answered %q", cmd, alone)
		}
		both, _ := serveAll(t, s, [][][]byte{check, cmd})
		rest := replyBehind(both)
		if !bytes.HasPrefix(both, []byte("*7\r\n:")) || len(rest) == 0 || bytes.IndexByte([]byte("*:-"), rest[0]) < 0 {
			t.Fatalf("behind a check %q is answered %q", cmd, both)
		}
	})
}

// replyBehind returns the bytes after the first decision of seven elements.
func replyBehind(replies []byte) []byte {
	rest := replies
	for range 1 + 5 + 2 + 2 { // lines
		_, rest, _ = bytes.Cut(rest, []byte("\r\n"))
	}
	return rest
}
