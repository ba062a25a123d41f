package resp

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

func repliesOf(b []byte, seed uint64) *Reader { return NewReader(redistest.NewPieces(b, seed)) }

// FuzzReplies reads arbitrary bytes with every method of Reader that a pipeline uses.
// The result does not depend on the pieces, the buffer does not grow, and a complete reply
// is read without waiting for more bytes.
func FuzzReplies(f *testing.F) {
	for i, text := range redistest.Replies {
		f.Add([]byte(text), uint64(i))
	}
	read := []func(*Reader) (any, error){
		func(in *Reader) (any, error) { return in.Strings() },
		func(in *Reader) (any, error) { return in.Array() },
		func(in *Reader) (any, error) { return in.Integer() },
		func(in *Reader) (any, error) { return in.StartsWith("-NOSCRIPT") },
		func(in *Reader) (any, error) {
			line, err := in.Line()
			return string(line), err
		},
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		one, other := repliesOf(b, seed), repliesOf(b, seed+1)
		which := rand.New(rand.NewPCG(seed, 4))
		for range len(b) + 1 {
			i := which.IntN(len(read))
			got, err := read[i](one)
			again, errAgain := read[i](other)
			if !sameReply(got, again) || !sameFailure(err, errAgain) {
				t.Fatalf("reading %d: %v, %v in some pieces, %v, %v in others", i, got, err, again, errAgain)
			}
			if words, ok := got.([]string); ok && len(words) > maxReplyWords {
				t.Fatalf("%d words", len(words))
			}
			if len(one.buf) > 2*MaxBulk {
				t.Fatalf("the buffer has grown to %d bytes", len(one.buf))
			}
			var refused Error
			if err != nil && !errors.As(err, &refused) {
				return // a pipeline hangs up
			}
		}
	})
}

func sameReply(a, b any) bool {
	wordsA, isWords := a.([]string)
	if !isWords {
		return a == b
	}
	wordsB := b.([]string)
	if len(wordsA) != len(wordsB) {
		return false
	}
	for i := range wordsA {
		if wordsA[i] != wordsB[i] {
			return false
		}
	}
	return true
}

func sameFailure(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Error() == b.Error()
}
