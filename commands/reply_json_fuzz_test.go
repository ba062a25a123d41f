package commands

import (
	"encoding/json"
	"testing"
)

// FuzzReplyJSON: any reply becomes JSON, or is refused.
func FuzzReplyJSON(f *testing.F) {
	f.Add([]byte("%1\r\n$7\r\nallowed\r\n:1\r\n"))
	f.Add([]byte("*2\r\n_\r\n$0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, reply []byte) {
		if out, ok := AppendJSON(nil, reply); ok && !json.Valid(out) {
			t.Errorf("%q: %q", reply, out)
		}
	})
}
