package server

import (
	"crypto/tls"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMalformed sends input on which parsers crash, loop or allocate without bound, and
// input that redis-server 7.0.15 rejects, and expects Redis' texts.
func TestMalformed(t *testing.T) {
	const prefix = "-ERR Protocol error: "
	tests := []struct{ name, input, want string }{
		{"overflowing bulk length", "*1\r\n$9223372036854775807\r\n", prefix + "invalid bulk length\r\n"},
		{"overflowing bulk length 2", "*1\r\n$9223372036854775800\r\n", prefix + "invalid bulk length\r\n"},
		{"overflowing count", "*9223372036854775807\r\n", prefix + "invalid multibulk length\r\n"},
		{"count of a billion", "*1000000000\r\n", prefix + "invalid multibulk length\r\n"},
		{"count of a million", "*1000000\r\n", prefix + "invalid multibulk length\r\n"},
		{"count over the bound", "*1025\r\n", prefix + "invalid multibulk length\r\n"},
		{"bulk of 2 GiB", "*1\r\n$2147483648\r\n", prefix + "invalid bulk length\r\n"},
		{"bulk of 256 MiB", "*1\r\n$268435456\r\n" + strings.Repeat("x", 1<<20), prefix + "invalid bulk length\r\n"},
		{"bulk over the bound", "*1\r\n$65537\r\n", prefix + "invalid bulk length\r\n"},
		{"negative bulk length", "*1\r\n$-1\r\n", prefix + "invalid bulk length\r\n"},
		{"bulk length of letters", "*1\r\n$abc\r\n", prefix + "invalid bulk length\r\n"},
		{"bulk length with a zero", "*1\r\n$04\r\nPING\r\n", prefix + "invalid bulk length\r\n"},
		{"bulk longer than its length", "*1\r\n$4\r\nPINGX\r\n", prefix + "invalid bulk length\r\n"},
		{"bulk with half a line end", "*1\r\n$4\r\nPING\rX", prefix + "invalid bulk length\r\n"},
		{"count without digits", "*\r\n", prefix + "invalid multibulk length\r\n"},
		{"count with a plus", "*+1\r\n", prefix + "invalid multibulk length\r\n"},
		{"count with a zero", "*01\r\n", prefix + "invalid multibulk length\r\n"},
		{"count without CR", "*1\n$4\r\nPING\r\n", prefix + "invalid multibulk length\r\n"},
		{"count with half a line end", "*1\rX$4\r\nPING\r\n", prefix + "invalid multibulk length\r\n"},
		{"endless count", "*" + strings.Repeat("1", 70000), prefix + "too big mbulk count string\r\n"},
		{"endless length", "*1\r\n$" + strings.Repeat("1", 70000), prefix + "too big bulk count string\r\n"},
		{"endless line", strings.Repeat("a", 70000), prefix + "too big inline request\r\n"},
		{"long line", "ECHO " + strings.Repeat("a", 65532) + "\r\n", prefix + "too big inline request\r\n"},
		{"line of too many words", strings.Repeat("a ", 1025) + "\r\n", prefix + "too big inline request\r\n"},
		{"no dollar", "*1\r\nXabc\r\n", prefix + "expected '$', got 'X'\r\n"},
		{"empty line for a dollar", "*1\r\n\r\n", prefix + "expected '$', got ' '\r\n"},
		{"control byte for a dollar", "*1\r\n\x01\r\n", prefix + "expected '$', got '\\x01'\r\n"},
		{"open quote", "ECHO \"abc\r\n", prefix + "unbalanced quotes in request\r\n"},
		{"quote in a word", "ECHO \"abc\"d\r\n", prefix + "unbalanced quotes in request\r\n"},
		{"quotes back to back", "ECHO 'a'\"b\"\r\n", prefix + "unbalanced quotes in request\r\n"},
		{"replies come first", "PING\r\nPING\r\n*x\r\nPING\r\n", "+PONG\r\n+PONG\r\n" + prefix + "invalid multibulk length\r\n"},
		{"a line that decoding half mends", "PING\r\nECHO \"a\" \"\r\n", "+PONG\r\n" + prefix + "unbalanced quotes in request\r\n"},
		{"browser posts", "POST / HTTP/1.1\r\n", httpReply},
		{"a probe", "GET / HTTP/1.0\r\n\r\n", httpReply},
		{"a request line without Host", "HEAD /healthz HTTP/1.1\r\n", httpReply},
		{"browser, lower case", "post\r\n", httpReply},
		{"browser gets", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", httpReply},
		{"browser in RESP", "*1\r\n$4\r\nPOST\r\n", httpWordReply},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc", tlsReply},
		{"TLS behind a command", "PING\r\n\x16\x03\x01", "+PONG\r\n" + tlsReply},
		{"what a browser smuggles", "PING\r\nPOST / HTTP/1.1\r\nPING\r\n", httpReply},
	}
	r := start(t, Options{})
	bystander := r.dial()
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := r.dial()
			c.t = t
			c.send(test.input)
			c.expectEnd(test.want)
			r.closedSession()
			if got := r.server.Stats().ProtocolErrors; got != int64(i+1) {
				t.Errorf("%d protocol errors counted, want %d", got, i+1)
			}
			bystander.t = t
			bystander.ping()
		})
	}
}

// TestHTTPIsLogged: HTTP requests are logged once a minute, with the addresses that they are meant
// for. A command that looks like one is none.
func TestHTTPIsLogged(t *testing.T) {
	log := capture(t)
	r := start(t, Options{})
	c := r.dial()
	c.send(command("GET", "/", "HTTP/1.1") + "GET / HTTP\r\nGET k HTTP/1.1 x\r\nPING\r\n")
	c.expect(strings.Repeat("-ERR unknown command\r\n", 3) + "+PONG\r\n")
	if log() != "" {
		t.Errorf("commands are logged:\n%s", log())
	}
	for range 3 {
		c := r.dial()
		c.send("GET / HTTP/1.1\r\n")
		c.expectEnd(httpReply)
	}
	const want = "received an HTTP request on the port for Redis clients"
	if got := log(); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) || !strings.Contains(got, "--admin") || !strings.Contains(got, "--http") {
		t.Errorf("the log is\n%swant one line with %q", got, want)
	}
}

// TestTLSIsLogged: TLS connections are logged once a minute, with what to change. Their clients need not
// wait for a deadline.
func TestTLSIsLogged(t *testing.T) {
	log := capture(t)
	r := start(t, Options{})
	for range 3 {
		conn, err := tls.Dial("tcp", r.addr, &tls.Config{ServerName: "limitgate"})
		if err == nil {
			conn.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "does not look like a TLS handshake") {
			t.Errorf("the client's error is %v", err)
		}
	}
	const want = "received a TLS connection on a port without TLS"
	if got := log(); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) || !strings.Contains(got, "--tls-cert") {
		t.Errorf("the log is\n%swant one line with %q", got, want)
	}
}

// TestIgnored sends input that Redis ignores.
func TestIgnored(t *testing.T) {
	r := start(t, Options{})
	for _, nothing := range []string{"*0\r\n", "*-1\r\n", "*-5\r\n", "\r\n", "\n", "   \r\n", "\t\r\n", "\r\n\r\n*0\r\n\n"} {
		c := r.dial()
		c.send(nothing + "PING\r\n" + nothing + command("PING") + nothing)
		c.expect("+PONG\r\n+PONG\r\n")
		c.ping()
	}
}

// TestUnauthenticatedBounds checks the stricter bounds, and that they apply until the
// client authenticates: AUTH and the commands that it allows may come in one segment.
func TestUnauthenticatedBounds(t *testing.T) {
	r := start(t, Options{RequireAuth: true})
	tests := []struct{ input, want string }{
		{"*11\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n"},
		{"*1\r\n$16385\r\n", "-ERR Protocol error: unauthenticated bulk length\r\n"},
		{command("AUTH", "no") + "*11\r\n", "+OK\r\n-ERR Protocol error: unauthenticated multibulk length\r\n"},
		{command("AUTH", "yes") + "*1025\r\n", "+OK\r\n-ERR Protocol error: invalid multibulk length\r\n"},
	}
	for _, test := range tests {
		c := r.dial()
		c.send(test.input)
		c.expectEnd(test.want)
	}
	long := command(append([]string{"ECHO", strings.Repeat("x", 20000)}, make([]string, 20)...)...)
	c := r.dial()
	c.send(command("AUTH", "yes") + long + "PING\r\n")
	c.expect("+OK\r\n" + long + "+PONG\r\n")
}

// TestMemoryIsBounded streams pipelined commands and reads their replies, which would
// make a buffer that only doubles grow without end.
func TestMemoryIsBounded(t *testing.T) {
	const total, bound = 32 << 20, 24 << 20
	r := start(t, Options{})
	c := r.dial()
	if err := c.SetDeadline(time.Now().Add(6 * testTimeout)); err != nil { // a million commands take a busy machine some time
		t.Fatal(err)
	}
	// 27 bytes divide no buffer: there is always a command cut in two.
	segment := strings.Repeat(command("PING", "12345", ""), 2000)
	c.ping()
	before := heap()
	go func() {
		for range total / len(segment) {
			c.send(segment)
		}
		c.send("QUIT\r\n")
	}()
	buf := make([]byte, 1<<20)
	for most := uint64(0); ; {
		n, err := io.ReadFull(c.r, buf)
		if most = max(most, heap()); most > before+bound {
			t.Fatalf("heap grew by %d MiB", (most-before)>>20)
		}
		if err != nil {
			if string(buf[n-5:n]) != "+OK\r\n" {
				t.Fatalf("last reply %q", buf[n-5:n])
			}
			return
		}
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
