package redistest

import (
	"io"
	"math/rand/v2"
)

// Pieces is a reader that returns some bytes in pieces of random lengths, and then io.EOF.
type Pieces struct {
	Rest   []byte // the bytes that were not read yet
	random *rand.Rand
}

// NewPieces returns a reader of b. The pieces depend on seed only.
func NewPieces(b []byte, seed uint64) *Pieces {
	return &Pieces{Rest: b, random: rand.New(rand.NewPCG(seed, 3))}
}

// Read reads at most 40 bytes.
func (p *Pieces) Read(b []byte) (int, error) {
	if len(p.Rest) == 0 {
		return 0, io.EOF
	}
	n := min(len(b), len(p.Rest), 1+p.random.IntN(40))
	copy(b, p.Rest[:n])
	p.Rest = p.Rest[n:]
	return n, nil
}

// Replies are seeds for fuzzers of replies: some well formed, some not.
var Replies = []string{
	"*2\r\n:1700000000000000\r\n:5\r\n",
	"*4\r\n:1700000000000000\r\n:5000000\r\n$7\r\nLGCLOCK\r\n$8\r\nnot here\r\n",
	"*9\r\n:1700000000000000\r\n:1\r\n:0\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n",
	"*0\r\n", "*-1\r\n", "-NOSCRIPT No matching script.\r\n", "-ERR x\r\n", "+OK\r\n", "$-1\r\n", ":-1\r\n",
	"*3\r\n$6\r\nmaster\r\n:0\r\n*1\r\n*3\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n$1\r\n0\r\n",
	"*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "$5\r\nab", "*1048577\r\n", ":999999999999999999\r\n", "\r\n", "\n",
}
