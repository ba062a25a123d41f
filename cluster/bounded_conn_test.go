package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/resp"
)

// piecesConn is a connection that delivers some bytes in pieces.
type piecesConn struct {
	net.Conn
	*redistest.Pieces
}

func (c piecesConn) Read(b []byte) (int, error) { return c.Pieces.Read(b) }

// passed returns the bytes that a boundedConn passes on, and its error.
func passed(b []byte, seed uint64) ([]byte, error) {
	return io.ReadAll(&boundedConn{Conn: piecesConn{Pieces: redistest.NewPieces(b, seed)}})
}

// TestBoundedConn: replies of every type pass as they are, and those that announce too much
// fail at once.
func TestBoundedConn(t *testing.T) {
	for _, text := range []string{
		"+OK\r\n", "-ERR x\r\n", ":-5\r\n", "$-1\r\n", "$0\r\n\r\n", "$3\r\na\r\n\r\n", "*-1\r\n", "*0\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(999999999999999999999\r\n",
		"*2\r\n$4\r\n*999\r\n:1\r\n", "%1\r\n+a\r\n*1\r\n:1\r\n", "~1\r\n:1\r\n", ">2\r\n+a\r\n+b\r\n", "=7\r\ntxt:abc\r\n",
		"$12\r\n$9999999999\r\n+OK\r\n", "$" + fmt.Sprint(resp.MaxBulk) + "\r\n" + strings.Repeat("x", resp.MaxBulk) + "\r\n+OK\r\n",
		strings.Repeat("*1000\r\n"+strings.Repeat(":1\r\n", 1000), 300), // many replies are no large one
	} {
		if got, err := passed([]byte(text), 1); err != nil || string(got) != text {
			t.Errorf("%.40q: %d bytes of %d, %v", text, len(got), len(text), err)
		}
	}
	for _, text := range []string{
		"$1099511627776\r\n", "$2097153\r\n", "$999999999999999999999999\r\n", "!9999999\r\n", "=9999999\r\n", "*1152921504606846976\r\n", "*131073\r\n", "%65537\r\n",
		"*2\r\n*100000\r\n*100000\r\n", strings.Repeat("*1000\r\n", 140), "+" + strings.Repeat("x", 64<<10+1), ":" + strings.Repeat("1", 64<<10+1),
	} {
		if got, err := passed([]byte(text+strings.Repeat("x", 1<<20)), 2); !errors.Is(err, resp.ErrReply) || len(got) > 128<<10 {
			t.Errorf("%.40q: %d bytes pass, %v", text, len(got), err)
		}
	}
}

// TestLyingRedis: a node that announces replies of any size ends neither the process nor takes
// its memory, whichever command it answers so.
func TestLyingRedis(t *testing.T) {
	for _, lie := range []string{"$1099511627776\r\n", "*1152921504606846976\r\n", "*100000\r\n*100000\r\n*100000\r\n", "%4611686018427387904\r\n", "$-9999999999\r\n", "~999999999\r\n"} {
		addr := redistest.Listen(t, func(c net.Conn) {
			for buf := make([]byte, 4096); ; {
				if _, err := c.Read(buf); err != nil {
					return
				}
				if _, err := io.WriteString(c, lie); err != nil {
					return
				}
			}
		})
		if s, err := Open(t.Context(), Options{Addrs: []string{addr}, DialTimeout: time.Second, IOTimeout: time.Second}); err == nil {
			_ = s.Close()
			t.Errorf("%q opens a store", lie)
		}
	}
}

// TestClosedConnectionsAreNotUsed: go-redis looks at a connection of its pool before it uses
// it, so that a command after the end of a connection does not fail.
func TestClosedConnectionsAreNotUsed(t *testing.T) {
	node := redistest.Start(t)
	s := openWithOptions(t, Options{PoolSize: 1}, node.Addr)
	for i := range 20 {
		if err := s.Ping(t.Context()); err != nil {
			t.Fatalf("ping %d: %v", i, err)
		}
		node.CLI(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	}
}

// FuzzBoundedConn: the pieces in which bytes arrive do not matter, and at most what a reply may
// have passes.
func FuzzBoundedConn(f *testing.F) {
	for i, text := range redistest.Replies {
		f.Add([]byte(text), uint64(i))
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		one, errOne := passed(b, seed)
		random := rand.New(rand.NewPCG(seed, 9))
		other, errOther := passed(b, random.Uint64())
		if (errOne == nil) != (errOther == nil) || errOne == nil && (!bytes.Equal(one, b) || !bytes.Equal(other, b)) {
			t.Fatalf("%d and %d bytes of %d, %v and %v", len(one), len(other), len(b), errOne, errOther)
		}
	})
}
