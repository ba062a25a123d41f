package server

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/redcon"
)

// FuzzGuard feeds input in pieces and compares the commands that the guard accepts with
// those of the reference parser, to the byte; and then with redcon, which must not panic
// and must find the same words.
func FuzzGuard(f *testing.F) {
	seeds := []string{
		"*1\r\n$4\r\nPING\r\n", "PING\r\n", "*0\r\n*-1\r\n\r\n\nPING\n",
		"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n*1\r\n$4\r\nQUIT\r\n", "*1\r\n$9223372036854775807\r\n",
		"*9223372036854775807\r\n", "*1000000000\r\n", "*1\r\nXabc\r\n", "*1\r\n\r\n", "*1\r\n$04\r\nPING\r\n",
		"ECHO \"a\\x41\\n\\q\" 'it\\'s' ab\"c d\"\r\n", "ECHO \"abc\r\n", "ECHO 'a'b\r\n", "a\x0bb \x0c c\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\n\r\n", "*1\r\n$5\r\nhOsT:\r\n", "PING\r\n*1\r\n$4\r\nPINGX", "PING\r\n\x16\x03\x01",
		"*" + strings.Repeat("1", 80), "*1\r\n$" + strings.Repeat("0", 80), strings.Repeat("x", 80),
		"*3\r\n$60\r\n" + strings.Repeat("y", 60) + "\r\n$60\r\n" + strings.Repeat("z", 60) + "\r\n$60\r\n",
	}
	for _, seed := range seeds {
		f.Add([]byte(seed), []byte{1}, true, false)
		f.Add([]byte(seed), []byte{255}, false, true)
		f.Add([]byte(seed), []byte{3, 1, 7}, true, true)
	}
	f.Fuzz(func(t *testing.T, input, pieces []byte, small, guest bool) {
		lim := &parserBounds{args: 1024, bulk: 64 << 10, request: 1 << 20, inline: 64 << 10, unauthenticated: guest}
		if small {
			lim = &parserBounds{args: 12, bulk: 64, request: 160, inline: 64, unauthenticated: guest}
		}
		want, rest, wantErr := refParse(string(input), lim)
		got, consumed, err := guardParse(t, input, pieces, lim)
		if !errors.Is(err, wantErr) {
			t.Fatalf("guard says %v, reference %v", err, wantErr)
		}
		if consumed != rest {
			t.Errorf("guard consumed %d bytes, reference %d", consumed, rest)
		}
		same := func(a []string, b refCommand) bool { return slices.Equal(a, b.words) }
		if !slices.EqualFunc(got, want, same) {
			t.Fatalf("guard found %q, reference %+v", got, want)
		}
		for i, cmd := range want {
			askRedcon(t, got[i], input[cmd.start:cmd.end])
		}
	})
}

// guardParse runs the guard's input over a reader that returns pieces.
func guardParse(t *testing.T, text, pieces []byte, lim *parserBounds) (cmds [][]string, consumed int, err error) {
	in, r := new(readBuffer), &pieceReader{rest: text, sizes: pieces}
	most := max(batchBytes, 2*(lim.request+lim.inline+2))
	for total := 0; ; {
		n, readErr := in.fill(r)
		total += n
		for more := true; more; {
			b := takeBatch()
			err = in.collect(b, lim)
			for _, cmd := range b.cmds {
				cmds = append(cmds, texts(cmd))
			}
			more = !b.empty()
			b.release()
		}
		if len(in.buf) > most {
			t.Fatalf("the buffer has %d bytes", len(in.buf))
		}
		if consumed = total - (in.end - in.next); err != nil || readErr != nil {
			return cmds, consumed, err
		}
		in.settle()
	}
}

// pieceReader returns its bytes in pieces of the given sizes, over and over.
type pieceReader struct {
	rest, sizes []byte
	turn        int
}

func (r *pieceReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	size := len(r.rest)
	if len(r.sizes) > 0 {
		size = int(r.sizes[r.turn%len(r.sizes)]) + 1
		r.turn++
	}
	n := copy(p, r.rest[:min(size, len(r.rest))])
	r.rest = r.rest[n:]
	return n, nil
}

func texts(words [][]byte) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return all
}

// askRedcon parses a command with redcon: as it was sent, if it was framed, and as the
// guard understood it.
func askRedcon(t *testing.T, words []string, raw []byte) {
	forms := [][]byte{[]byte(command(words...))}
	if raw[0] == '*' {
		forms = append(forms, raw)
	}
	for _, form := range forms {
		cmd, err := redcon.NewReader(bytes.NewReader(form)).ReadCommand()
		if err != nil || !slices.Equal(texts(cmd.Args), words) {
			t.Fatalf("redcon reads %q from %q: %v", cmd.Args, form, err)
		}
	}
}
