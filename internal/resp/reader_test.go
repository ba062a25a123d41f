package resp

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestReplyInPieces reads replies of every length from pieces of any size, including
// replies that do not fit into the initial buffer.
func TestReplyInPieces(t *testing.T) {
	for _, n := range []int{0, 1, 1000, replyBuffer - 20, replyBuffer, MaxBulk} {
		word := bytes.Repeat([]byte("x"), n)
		b := AppendBulk(AppendArray(nil, 1), word)
		in := repliesOf(append(b, ":7\r\n"...), uint64(n))
		if size, err := in.Array(); size != 1 || err != nil {
			t.Fatalf("%d, %v", size, err)
		}
		var text Error
		if _, err := in.Integer(); !errors.As(err, &text) || string(text) != string(word) {
			t.Fatalf("a text of %d bytes: %v", n, err)
		}
		if v, err := in.Integer(); v != 7 || err != nil {
			t.Errorf("behind %d bytes: %d, %v", n, v, err)
		}
	}
}

// TestReplyTooLarge checks that a reply of an announced length beyond the bounds fails at
// once, not after reading the rest or running out of memory.
func TestReplyTooLarge(t *testing.T) {
	words := func(in *Reader) error {
		_, err := in.Strings()
		return err
	}
	array := func(in *Reader) error {
		_, err := in.Array()
		return err
	}
	integer := func(in *Reader) error {
		_, err := in.Integer()
		return err
	}
	const rest = 1 << 20
	for name, tc := range map[string]struct {
		read func(*Reader) error
		text string
		more string
	}{
		"deep arrays":   {words, "", "*1\r\n"},
		"wide arrays":   {words, "*4000\r\n*4000\r\n", ":1\r\n"},
		"a wide array":  {words, "*4097\r\n", "*0\r\n"},
		"a large word":  {words, "$4097\r\n", "x"},
		"a long array":  {array, "*1048577\r\n", ":1\r\n"},
		"a long text":   {integer, "$2097153\r\n", "x"},
		"a longer text": {integer, "$999999999999999999\r\n", "x"},
		"a long line":   {integer, ":", "1"},
		"a long error":  {array, "-", "x"},
	} {
		in := repliesOf([]byte(tc.text+strings.Repeat(tc.more, rest)), 1)
		if err := tc.read(in); !errors.Is(err, ErrReply) {
			t.Errorf("%s: %v", name, err)
		}
		if read := len(tc.text) + rest*len(tc.more) - len(in.source.(*redistest.Pieces).Rest); read > 2*MaxBulk {
			t.Errorf("%s: %d bytes were read", name, read)
		}
		if len(in.buf) > 2*MaxBulk {
			t.Errorf("%s: a buffer of %d bytes", name, len(in.buf))
		}
	}
}
