package resp

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestFollowerCounts: replies are counted when they have ended, not before, whatever is in
// them.
func TestFollowerCounts(t *testing.T) {
	replies := []string{
		"+OK\r\n", "-ERR x\r\n", ":-5\r\n", "$-1\r\n", "$0\r\n\r\n", "$5\r\n*1\r\n+\r\n", "*-1\r\n", "*0\r\n", "_\r\n",
		"*2\r\n:1\r\n:2\r\n", "*2\r\n*2\r\n:1\r\n$2\r\n\r\n\r\n:2\r\n", "%1\r\n+a\r\n*1\r\n:1\r\n", "*1\r\n*0\r\n", "*1\r\n$-1\r\n",
	}
	for at := range replies {
		text := strings.Join(append(replies[at:len(replies):len(replies)], replies[:at]...), "")
		var f Follower
		count, next, begin := 0, at, 0
		for i := range len(text) {
			n, err := f.Follow([]byte(text[i : i+1]))
			if err != nil {
				t.Fatalf("%q: %v", text[:i+1], err)
			}
			ends := i+1 == begin+len(replies[next])
			if (n == 1) != ends || n > 1 {
				t.Fatalf("%d replies have ended after %q", n, text[begin:i+1])
			}
			if ends {
				count, next, begin = count+1, (next+1)%len(replies), i+1
			}
		}
		if count != len(replies) {
			t.Errorf("%d replies of %d", count, len(replies))
		}
	}
}

// FuzzFollower: the pieces do not matter, and after as many replies as are counted the reader
// has read them without more bytes.
func FuzzFollower(f *testing.F) {
	for i, text := range redistest.Replies {
		f.Add([]byte(text), uint64(i))
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		whole, errWhole := new(Follower).Follow(b)
		pieces, follow := redistest.NewPieces(b, seed), new(Follower)
		sum := 0
		var errPieces error
		for buf := make([]byte, 64); errPieces == nil; {
			n, err := pieces.Read(buf)
			if errors.Is(err, io.EOF) {
				break
			}
			ended, failed := follow.Follow(buf[:n])
			sum, errPieces = sum+ended, failed
		}
		if (errWhole == nil) != (errPieces == nil) || errWhole == nil && sum != whole {
			t.Fatalf("%d replies and %v at once, %d and %v in pieces", whole, errWhole, sum, errPieces)
		}
		in := NewReader(strings.NewReader(string(b)))
		for range whole {
			_, err := in.Strings()
			if errors.Is(err, io.EOF) {
				t.Fatalf("fewer than %d replies", whole)
			}
			if err != nil {
				return // no reply to this program; an error within an array ends its reading
			}
		}
	})
}
