package httpapi_test

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/httpapi"
	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/internal/wrongport"
)

// gate admits requests one by one, as the test says.
type gate struct {
	recorder
	entered, leave, left chan struct{}
	inside, most         int // guarded by mu
}

// mostInside returns the most requests that were inside at a time, since the last call.
func (g *gate) mostInside() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	most := g.most
	g.most = 0
	return most
}

func (g *gate) Decide(u *users.User, peer netip.Addr, cmds [][][]byte, answers []commands.Answer) []commands.Answer {
	g.mu.Lock()
	g.inside++
	g.most = max(g.most, g.inside)
	g.mu.Unlock()
	g.entered <- struct{}{}
	<-g.leave
	g.mu.Lock()
	g.inside--
	g.mu.Unlock()
	g.left <- struct{}{}
	return g.recorder.Decide(u, peer, cmds, answers)
}

// TestPipelinedTurns: connections are answered at the same time, but one request at a time of all that are sent ahead of an
// answer.
func TestPipelinedTurns(t *testing.T) {
	const connections = 8
	g := &gate{entered: make(chan struct{}), leave: make(chan struct{}), left: make(chan struct{}, 4*connections)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	serveBound(t, httpapi.Options{Handler: g}, wrongport.Plain(httpapi.Bound(l), slog.New(slog.DiscardHandler))) // as a proxy has it
	replies := make(chan string)
	for range connections {
		go func() {
			replies <- send(t, addr, strings.Repeat("GET /check?tenant=a HTTP/1.1\r\nHost: x\r\n\r\n", 3)+"GET /check?tenant=a HTTP/1.0\r\n\r\n")
		}()
	}
	for range connections {
		<-g.entered
	}
	if n := g.mostInside(); n != connections {
		t.Errorf("%d of the first requests at a time", n)
	}
	for range connections {
		g.leave <- struct{}{}
	}
	for range connections {
		<-g.left
	}
	g.mostInside()
	for range 3 * connections {
		<-g.entered
		g.leave <- struct{}{}
	}
	if n := g.mostInside(); n != 1 {
		t.Errorf("%d of the further requests at a time", n)
	}
	for range connections {
		if reply := <-replies; strings.Count(reply, "200 OK") != 4 {
			t.Errorf("%s", reply)
		}
	}
}

// TestPipelinedLateBody: a client whose body is late keeps no turn from others.
func TestPipelinedLateBody(t *testing.T) {
	decided := &notifying{decided: make(chan struct{}, 8)}
	addr := serve(t, httpapi.Options{Handler: decided})
	const whole = "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n{\"tenant\":\"a\"}"
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	answers := bufio.NewReader(c)
	if _, err := io.WriteString(c, whole+"POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"); err != nil {
		t.Fatal(err)
	}
	<-decided.decided
	if reply := send(t, addr, strings.Repeat(whole, 3)+"GET /check HTTP/1.0\r\n\r\n"); strings.Count(reply, "200 OK") != 4 {
		t.Errorf("others get %s", reply)
	}
	if _, err := io.WriteString(c, "d\r\n\"tenant\":\"a\"}\r\n0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if code := readAnswer(t, answers); code != http.StatusOK {
			t.Errorf("answer %d of the late one is %d", i, code)
		}
	}
}

// notifying sends an item for each call of Decide.
type notifying struct {
	recorder
	decided chan struct{}
}

func (n *notifying) Decide(u *users.User, peer netip.Addr, cmds [][][]byte, answers []commands.Answer) []commands.Answer {
	n.decided <- struct{}{}
	return n.recorder.Decide(u, peer, cmds, answers)
}

// readAnswer reads an answer, and returns its status.
func readAnswer(t *testing.T, from *bufio.Reader) int {
	t.Helper()
	a, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	_, _ = io.Copy(io.Discard, a.Body)
	return a.StatusCode
}

// counting counts the bytes that are read from the connections of a listener.
type counting struct {
	net.Listener
	read atomic.Int64
}

func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &counted{c, &l.read}, err
}

type counted struct {
	net.Conn
	read *atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// TestLargeBodyBelowCheck: of a body for /check no more is read than its beginning.
func TestLargeBodyBelowCheck(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &counting{Listener: inner}
	serveBound(t, httpapi.Options{Handler: new(recorder)}, httpapi.Bound(l))
	reply := send(t, inner.Addr().String(), "POST /check/a HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n{"+strings.Repeat("b", 16<<20))
	if n := l.read.Load(); !strings.Contains(reply, "200 OK") || n > 1<<20 {
		t.Errorf("%d bytes are read, for %.100s", n, reply)
	}
}
