package commands_test

import (
	"bytes"
	"context"
	"testing"
)

// TestTop: requested and denied buckets are reported with their limit.
func TestTop(t *testing.T) {
	s := newSession(t, newHandler(t, handlerOptions{}))
	check := [][]byte{[]byte("RL.CHECK"), []byte("acme"), []byte("POST /pay"), []byte("-")}
	for range 5000 {
		s.Serve(context.Background(), [][][]byte{check}, nil)
	}
	got, _, _ := s.Serve(context.Background(), [][][]byte{{[]byte("RL.TOP"), []byte("1")}}, nil)
	for _, want := range []string{
		"*4\r\n$3\r\nhot\r\n*1\r\n*6\r\n$6\r\nbucket\r\n", "$6\r\ndenied\r\n*1\r\n*6\r\n$6\r\nbucket\r\n$35\r\nlg:t:{acme}:payments;s;op=POST /pay\r\n$8\r\nlimit_id\r\n$8\r\npayments\r\n$10\r\nper_second\r\n:",
	} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("RL.TOP answers %q, want %q in it", got, want)
		}
	}
}
