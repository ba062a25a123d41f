package server

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/redcon"
)

// redconInput is the variable with the bytes that a child process feeds to redcon.
const redconInput = "LIMITGATE_TEST_REDCON_INPUT"

// TestRedconReader shows why clients' bytes do not go to redcon's reader: 26 bytes end the process,
// and 22 keep a processor busy for ever. Each runs in a child process, and the parser of this package
// refuses both.
func TestRedconReader(t *testing.T) {
	if input := os.Getenv(redconInput); input != "" {
		_, err := redcon.NewReader(strings.NewReader(input)).ReadCommand()
		t.Fatalf("redcon returns: %v", err)
	}
	const spinTime = 2 * time.Second
	for name, test := range map[string]struct{ input, want string }{
		"panics": {"*1\r\n$9223372036854775807\r\n", "index out of range"},
		"spins":  {"*9223372036854775807\r\n", "signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), spinTime)
			defer cancel()
			child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestRedconReader$")
			child.Env = append(os.Environ(), redconInput+"="+test.input)
			out, err := child.CombinedOutput()
			if err == nil || !strings.Contains(string(out)+err.Error(), test.want) {
				t.Errorf("the child ends with %v, want %q:\n%s", err, test.want, out)
			}
			var p commandParser
			opts := DefaultOptions()
			_, refused := p.advance([]byte(test.input), &parserBounds{args: opts.MaxArgs, bulk: opts.MaxBulk, request: opts.MaxRequest, inline: opts.MaxInline})
			if breach := protocolError(""); !errors.As(refused, &breach) {
				t.Errorf("the parser of this package returns %v", refused)
			}
		})
	}
}

// BenchmarkReplyWriter writes a decision's reply with redcon's functions. BenchmarkDecisionReply of
// package commands does the same with its own.
func BenchmarkReplyWriter(b *testing.B) {
	var out []byte
	for b.Loop() {
		out = redcon.AppendArray(out[:0], 7)
		for _, n := range [...]int64{1, 600, 599, 0, 82914} {
			out = redcon.AppendInt(out, n)
		}
		out = redcon.AppendBulkString(out, "payments")
		out = redcon.AppendBulkString(out, "store")
	}
	if !bytes.HasPrefix(out, []byte("*7\r\n:1\r\n")) {
		b.Fatalf("%q", out)
	}
}
