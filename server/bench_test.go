package server

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
)

// ponger answers PING and allocates nothing. Weigh reports its commands as waiting if
// waits is set.
type ponger struct{ waits bool }

func (ponger) Serve(_ context.Context, cmds [][][]byte, out []byte) ([]byte, int, bool) {
	for range cmds {
		out = append(out, "+PONG\r\n"...)
	}
	return out, len(cmds), false
}

func (p ponger) Weigh([][]byte) (waits, long bool) { return p.waits, false }

func (ponger) Held() int { return 0 }

func (ponger) Close() {}

// BenchmarkPing measures one command over loopback, client included.
func BenchmarkPing(b *testing.B) {
	for _, depth := range []int{1, 16, 64, -1} {
		waits := depth < 0
		depth = max(1, depth)
		b.Run(fmt.Sprintf("P%d waits=%t", depth, waits), func(b *testing.B) {
			s := New(Options{}, func(Peer) Session { return ponger{waits} })
			r := startWith(b, s, nil, listen(b))
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				c := r.dial()
				pipeline := []byte(strings.Repeat(command("PING"), depth))
				reply := make([]byte, depth*len("+PONG\r\n"))
				for more := pb.Next(); more; {
					if _, err := c.Write(pipeline); err != nil {
						b.Error(err)
						return
					}
					if _, err := io.ReadFull(c.Conn, reply); err != nil {
						b.Error(err)
						return
					}
					for i := 0; i < depth && more; i++ {
						more = pb.Next()
					}
				}
				c.Close()
			})
		})
	}
}

// BenchmarkGuard measures one command from the buffer into the batch, without the
// reading: pipelines that arrive whole, and commands in pieces.
func BenchmarkGuard(b *testing.B) {
	check := command("RL.CHECK", "acme", "POST /v1/payments", "203.0.113.7", "1", "DIM", "user", "u1")
	tests := []struct {
		name, command string
		piece         int
	}{
		{"ping", command("PING"), 4096},
		{"check", check, 4096},
		{"check inline", "RL.CHECK acme \"POST /v1/payments\" 203.0.113.7 1 DIM user u1\r\n", 4096},
		{"check in pieces of 7", check, 7},
	}
	for _, test := range tests {
		b.Run(test.name, func(b *testing.B) {
			lim := &New(Options{}, nil).bounds
			const run = 256
			stream := strings.Repeat(test.command, run)
			in := new(readBuffer)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += run {
				for rest := stream; rest != ""; {
					piece := rest[:min(test.piece, len(rest))]
					rest = rest[len(piece):]
					if _, err := in.fill(strings.NewReader(piece)); err != nil {
						b.Fatal(err)
					}
					batch := takeBatch()
					if err := in.collect(batch, lim); err != nil {
						b.Fatal(err)
					}
					batch.release()
				}
			}
		})
	}
}
