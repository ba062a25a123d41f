package cluster

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// fake is a server that poses as a single Redis master and knows every script. Tests define
// its reply to EVALSHA.
type fake struct {
	tb       testing.TB
	listen   net.Listener
	run      func(c net.Conn, command []string) error
	greeting []byte // reply to SCRIPT LOAD, instead of the usual one
	wg       sync.WaitGroup
	dialed   atomic.Int64
	runs     atomic.Int64

	mu    sync.Mutex // guards conns
	conns []net.Conn
}

// startFake starts a server, which stops with the test at the latest.
func startFake(tb testing.TB, greeting []byte, run func(net.Conn, []string) error) *fake {
	tb.Helper()
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	f := &fake{tb: tb, listen: listen, run: run, greeting: greeting}
	f.wg.Go(f.accept)
	tb.Cleanup(f.close)
	return f
}

func (f *fake) addr() string { return f.listen.Addr().String() }

func (f *fake) accept() {
	for {
		c, err := f.listen.Accept()
		if err != nil {
			return
		}
		f.dialed.Add(1)
		f.mu.Lock()
		f.conns = append(f.conns, c)
		f.mu.Unlock()
		f.wg.Go(func() {
			defer func() { _ = c.Close() }()
			f.serve(c)
		})
	}
}

// close closes the server and its connections.
func (f *fake) close() {
	_ = f.listen.Close()
	f.mu.Lock()
	for _, c := range f.conns {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.wg.Wait()
}

// usual holds the replies of a Redis to everything but decisions.
var usual = map[string]string{
	"HELLO": "-ERR unknown command\r\n", "CLIENT": "+OK\r\n", "PING": "+PONG\r\n",
	"INFO":   "$19\r\ncluster_enabled:0\r\n\r\n",
	"ROLE":   "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n",
	"SCRIPT": "$40\r\n" + strings.Repeat("a", 40) + "\r\n",
	// The mark is there, and the number of instances is not known.
	"GET": "$1\r\n0\r\n", "GETEX": "$1\r\n0\r\n", "SET": "$1\r\n0\r\n",
}

// serve answers a connection until an error.
func (f *fake) serve(c net.Conn) {
	in := bufio.NewReader(c)
	for {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		name := strings.ToUpper(command[0])
		if name == "SCRIPT" {
			// Bytes that are never read must not fit into buffers of megabytes; the script must.
			_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		if name == "EVALSHA" {
			f.runs.Add(1)
			err = f.run(c, command)
		} else if name == "SCRIPT" && f.greeting != nil {
			if _, err = c.Write(f.greeting); string(f.greeting) == "!" {
				return
			}
		} else {
			_, err = io.WriteString(c, usual[name])
		}
		if err != nil {
			return
		}
	}
}

// readCommand reads a command in the format of clients.
func readCommand(in *bufio.Reader) ([]string, error) {
	length := func(kind byte) (int, error) {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		if line[0] != kind {
			return 0, fmt.Errorf("read command: %q", line)
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := length('*')
	if err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		size, err := length('$')
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words[i] = string(word[:size])
	}
	return words, nil
}
