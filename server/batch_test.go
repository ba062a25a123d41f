package server

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// writeCounter counts the writes on the connections it accepts.
type writeCounter struct {
	net.Listener
	writes atomic.Int64
}

type countedConn struct {
	*net.TCPConn
	writes *atomic.Int64
}

func (l *writeCounter) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countedConn{nc.(*net.TCPConn), &l.writes}, nil
}

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.TCPConn.Write(p)
}

// TestPipelineIsOneBatch sends a pipeline in one segment and expects one call of
// Serve, the replies in order, and one write.
func TestPipelineIsOneBatch(t *testing.T) {
	ln := &writeCounter{Listener: listen(t)}
	r := startOn(t, Options{}, ln)
	c := r.dial()
	var pipeline strings.Builder
	for i := range 100 { // 3 KiB: less than any segment on loopback
		pipeline.WriteString(command("ECHO", fmt.Sprint(i)))
	}
	for range 3 {
		c.send(pipeline.String())
		c.expect(pipeline.String())
	}
	if got, want := r.desk.served(), []int{100, 100, 100}; !slices.Equal(got, want) {
		t.Errorf("Serve got %v commands, want %v", got, want)
	}
	if got := ln.writes.Load(); got != 3 {
		t.Errorf("%d writes, want 3", got)
	}
}

// TestBatchGrows checks that a steady stream of large pipelines is served in large
// batches, none of them over the bounds.
func TestBatchGrows(t *testing.T) {
	r := start(t, Options{})
	c := r.dial()
	echo := command("ECHO", strings.Repeat("x", 500))
	pipeline := strings.Repeat(echo, 1000)
	c.send(pipeline[:len(pipeline)/2])
	go c.send(pipeline[len(pipeline)/2:] + pipeline)
	c.expect(pipeline + pipeline)
	most := slices.Max(r.desk.served())
	if most*len(echo) > batchBytes+len(echo) {
		t.Errorf("a batch of %d commands, %d bytes", most, most*len(echo))
	}
	if most*len(echo) < batchBytes/4 {
		t.Errorf("the largest batch had %d commands only", most)
	}
}

// TestBatchCount checks the bound on the number of commands.
func TestBatchCount(t *testing.T) {
	r := start(t, Options{})
	c := r.dial()
	for range 3 {
		c.send(strings.Repeat("PING\n", 5000))
		c.expect(strings.Repeat("+PONG\r\n", 5000))
	}
	if most := slices.Max(r.desk.served()); most > batchCommands {
		t.Errorf("a batch of %d commands", most)
	}
}

// TestBatchAfterHugeCommand checks that the memory that a huge command needed does not
// lead to huge batches, and that a pooled batch references no input.
func TestBatchAfterHugeCommand(t *testing.T) {
	lim := &parserBounds{args: 10, bulk: 1 << 20, request: 1 << 20, inline: 1 << 10}
	source := strings.NewReader(command(strings.Repeat("h", 600<<10)) + strings.Repeat("PING\r\n", 100<<10))
	in := new(readBuffer)
	for source.Len() > 0 {
		if _, err := in.fill(source); err != nil {
			t.Fatal(err)
		}
		for b := new(batch); ; {
			if err := in.collect(b, lim); err != nil {
				t.Fatal(err)
			}
			if b.empty() {
				break
			}
			if len(b.cmds) > 1 && b.bytes > batchBytes+6 || len(b.cmds) > batchCommands {
				t.Errorf("a batch of %d commands, %d bytes", len(b.cmds), b.bytes)
			}
			cmds, words := b.cmds, b.words
			b.release()
			b = new(batch)
			if cmds[0] != nil || words[len(words)-1] != nil {
				t.Fatal("a spare batch holds on to commands")
			}
		}
	}
}

// TestNothingRunsAfterQuit checks that the rest of a segment after QUIT is not run.
func TestNothingRunsAfterQuit(t *testing.T) {
	r := start(t, Options{})
	for _, rest := range []string{"PING\r\n", command("PING"), "*x\r\n", strings.Repeat("PING\n", 10000)} {
		c := r.dial()
		// A long pipeline first, so that the segment is read at once and holds more than
		// one batch.
		const many = 20000
		go c.send(strings.Repeat("PING\n", many))
		c.expect(strings.Repeat("+PONG\r\n", many))
		before := len(r.desk.served())
		go c.send("PING\r\nQUIT\r\n" + rest)
		c.expectCleanEnd("+PONG\r\n+OK\r\n")
		r.closedSession()
		if got := len(r.desk.served()) - before; got != 1 {
			t.Errorf("%d batches served, want 1", got)
		}
	}
}

// TestHalfClose checks that `printf ... | nc` gets all replies.
func TestHalfClose(t *testing.T) {
	r := start(t, Options{})
	c := r.dial()
	pipeline := strings.Repeat(command("ECHO", strings.Repeat("y", 300)), 2000)
	go func() {
		c.send(pipeline + "PING\r\n" + "PIN")
		if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Error(err)
		}
	}()
	c.expectEnd(pipeline + "+PONG\r\n")
}

// TestEmptyReply checks that a batch may have an empty reply.
func TestEmptyReply(t *testing.T) {
	r := start(t, Options{})
	c := r.dial()
	c.send("SILENCE\r\n")
	c.ping()
}

// TestRandomStream sends random commands in random pieces, and expects the exact bytes
// back.
func TestRandomStream(t *testing.T) {
	r := start(t, Options{})
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		c := r.dial()
		var stream, want strings.Builder
		for range 120 {
			cmd := randomCommand(rnd)
			want.WriteString(cmd)
			stream.WriteString(cmd)
			if rnd.IntN(4) == 0 {
				stream.WriteString([]string{"\r\n", "*0\r\n", "*-1\r\n", " \n"}[rnd.IntN(4)])
			}
			if rnd.IntN(4) == 0 {
				stream.WriteString("ECHO 'in line' \"\\x00\\n\"\r\n")
				want.WriteString(command("ECHO", "in line", "\x00\n"))
			}
		}
		go sendInPieces(c, rnd, stream.String())
		c.expectEnd(want.String() + "+OK\r\n")
	}
}

func randomCommand(rnd *rand.Rand) string {
	words := []string{"ECHO"}
	for range rnd.IntN(4) {
		size := []int{0, 1, 20, 300, 5000, 60001}[rnd.IntN(6)]
		word := make([]byte, rnd.IntN(size+1))
		for i := range word {
			word[i] = byte(rnd.Uint32())
		}
		words = append(words, string(word))
	}
	return command(words...)
}

func sendInPieces(c *client, rnd *rand.Rand, text string) {
	text += "QUIT\r\n"
	for len(text) > 0 {
		most := []int{1, 2, 10, 100, 4096, 70000}[rnd.IntN(6)]
		n := min(1+rnd.IntN(most), len(text))
		if _, err := io.WriteString(c.Conn, text[:n]); err != nil {
			return
		}
		text = text[n:]
	}
}
