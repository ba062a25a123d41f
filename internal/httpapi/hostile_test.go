package httpapi_test

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/httpapi"
	"github.com/limitgate/limitgate/internal/users"
)

// recorder admits everything, and records the tenants that are asked for.
type recorder struct {
	mu      sync.Mutex // guards tenants
	tenants []string
}

func (r *recorder) Decide(_ *users.User, _ netip.Addr, cmds [][][]byte, answers []commands.Answer) []commands.Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, args := range cmds {
		r.tenants = append(r.tenants, string(args[1]))
		a := commands.Answer{}
		a.Allowed = true
		answers = append(answers, a)
	}
	return answers
}

func (r *recorder) Peek(*users.User, [][]byte) (a commands.Answer) { return a }

func (r *recorder) Call(context.Context, *users.User, [][]byte) []byte { return []byte(":1\r\n") }

func (r *recorder) LogIn(context.Context, netip.Addr, *x509.Certificate, string, string) (*users.User, string) {
	return users.Unrestricted, ""
}

func (r *recorder) asked() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.tenants, " ")
}

// send sends bytes on a connection of its own, and returns all that comes back until it ends.
func send(t *testing.T, addr, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	go func() { _, _ = io.WriteString(c, text) }() // the server may end before it has read all
	reply, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%.60q: the connection does not end", text)
	}
	return string(reply)
}

// TestSmuggling: no request hides behind or within another one. Each text asks for the tenant a, and
// hides one for the tenant victim in what is no request of its own.
func TestSmuggling(t *testing.T) {
	const hidden = "GET /check?tenant=victim HTTP/1.1\r\nHost: x\r\n\r\n"
	const host = "Host: x\r\n"
	for name, text := range map[string]string{
		"length and chunks":        "POST /check?tenant=a HTTP/1.1\r\n" + host + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"chunks and length":        "POST /check?tenant=a HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nContent-Length: 64\r\n\r\n" + hidden,
		"two lengths":              "POST /check?tenant=a HTTP/1.1\r\n" + host + "Content-Length: 0\r\nContent-Length: 47\r\n\r\n" + hidden,
		"a list of lengths":        "POST /check?tenant=a HTTP/1.1\r\n" + host + "Content-Length: 0, 47\r\n\r\n" + hidden,
		"a sign":                   "POST /check?tenant=a HTTP/1.1\r\n" + host + "Content-Length: +47\r\n\r\n" + hidden,
		"a negative length":        "POST /check?tenant=a HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n" + hidden,
		"a length in hex":          "POST /check?tenant=a HTTP/1.1\r\n" + host + "Content-Length: 0x2f\r\n\r\n" + hidden,
		"an overflow":              "POST /check?tenant=a HTTP/1.1\r\n" + host + "Content-Length: 18446744073709551663\r\n\r\n" + hidden,
		"an unknown coding":        "POST /check?tenant=a HTTP/1.1\r\n" + host + "Transfer-Encoding: xchunked\r\n\r\n" + hidden,
		"two codings":              "POST /check?tenant=a HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n" + hidden,
		"a blank before the colon": "POST /check?tenant=a HTTP/1.1\r\n" + host + "Content-Length : 47\r\n\r\n" + hidden,
		"no name":                  "POST /check?tenant=a HTTP/1.1\r\n" + host + ": 47\r\n\r\n" + hidden,
		"a bad chunk size":         "POST /check?tenant=a HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n" + hidden,
		"a huge chunk":             "POST /check?tenant=a HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + hidden,
		"no version":               "GET /check?tenant=a\r\n" + hidden,
		"a blank more":             "GET  /check?tenant=a HTTP/1.1\r\n" + host + "\r\n" + hidden,
		"HTTP/2":                   "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + hidden,
		"a length longer than it":  "POST /check?tenant=a HTTP/1.1\r\n" + host + "Content-Length: 47\r\n\r\n" + hidden,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := new(recorder)
			reply := send(t, serve(t, httpapi.Options{Handler: r}), text+"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if got := r.asked(); strings.Contains(got, "victim") {
				t.Errorf("the hidden request was decided: %s\n%s", got, reply)
			}
		})
	}
}

// TestPipelined: requests on one connection without waiting are answered in their order.
func TestPipelined(t *testing.T) {
	r := new(recorder)
	reply := send(t, serve(t, httpapi.Options{Handler: r}), "GET /check?tenant=a HTTP/1.1\r\nHost: x\r\n\r\nPOST /check?tenant=b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET /check?tenant=c HTTP/1.0\r\n\r\n")
	if got := r.asked(); got != "a b c" || strings.Count(reply, "200 OK") != 3 {
		t.Errorf("asked for %s:\n%s", got, reply)
	}
}

// TestLargeRequests: what is larger than any honest request costs bounded memory and an error.
func TestLargeRequests(t *testing.T) {
	for name, row := range map[string]struct{ text, want string }{
		"a long header":      {"GET /check HTTP/1.1\r\nHost: x\r\nCookie: " + strings.Repeat("c", 1<<20) + "\r\n\r\n", " 431 "},
		"many headers":       {"GET /check HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", 100_000) + "\r\n", " 431 "},
		"a long URI":         {"GET /check/" + strings.Repeat("u", 1<<20) + " HTTP/1.1\r\nHost: x\r\n\r\n", " 431 "},
		"a header of 30 KiB": {"GET /check HTTP/1.1\r\nHost: x\r\nConnection: close\r\nCookie: " + strings.Repeat("c", 30<<10) + "\r\n\r\n", " 200 "},
		"a long body":        {"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n" + strings.Repeat("b", 1<<20), " 413 "},
		"a long chunked body": {
			"POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1000\r\n"+strings.Repeat("b", 0x1000)+"\r\n", 64), " 413 ",
		},
		"a body that nobody asked for": {"POST /check HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 100000000\r\n\r\n" + strings.Repeat("b", 1<<20), " 200 "},
		"the same in chunks": {
			"POST /check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1000\r\n"+strings.Repeat("b", 0x1000)+"\r\n", 1000), " 200 ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, _, _ := strings.Cut(send(t, serve(t, httpapi.Options{Handler: new(recorder)}), row.text), "\r\n")
			if !strings.Contains(first, row.want) {
				t.Errorf("%q, want %q", first, row.want)
			}
		})
	}
}

// TestSlowClients: a client that sends nothing, or little by little, is disconnected after the time
// for a request, whatever part it is in; others are served meanwhile.
func TestSlowClients(t *testing.T) {
	r := new(recorder)
	addr := serve(t, httpapi.Options{Handler: r})
	for name, begin := range map[string]string{
		"silence": "",
		"header":  "GET /check HTTP/1.1\r\nHost: x\r\nX: ",
		"body":    "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n",
		"unread":  "POST /check HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			since := time.Now()
			_ = c.SetDeadline(since.Add(30 * time.Second))
			if _, err := io.WriteString(c, begin); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				_, _ = io.Copy(io.Discard, c)
				close(ended)
			}()
			drip(c, ended, begin != "")
			if took := time.Since(since); took > 20*time.Second {
				t.Errorf("disconnected after %v", took)
			}
			fresh := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // an idle connection may be at its end
			a, err := fresh.Get("http://" + addr + "/check?tenant=other")
			if err != nil {
				t.Fatal(err)
			}
			_ = a.Body.Close()
			if a.StatusCode != http.StatusOK {
				t.Errorf("another client gets %s", a.Status)
			}
		})
	}
}

// drip writes a byte now and then until the connection has ended.
func drip(c net.Conn, ended <-chan struct{}, writes bool) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			if writes {
				_, _ = c.Write([]byte("x"))
			}
		}
	}
}

// TestTooManyConnections: a connection beyond the bound takes the place of the one that has been idle
// for longest, and is served.
func TestTooManyConnections(t *testing.T) {
	addr := serve(t, httpapi.Options{Handler: new(recorder)})
	const asked = "GET /check HTTP/1.1\r\nHost: x\r\n\r\n"
	ask := func(c net.Conn) error {
		if _, err := io.WriteString(c, asked); err != nil {
			return err
		}
		a, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err
		}
		_ = a.Body.Close()
		if a.StatusCode != http.StatusOK {
			return errors.New(a.Status)
		}
		return nil
	}
	var open []net.Conn
	for n := range httpapi.MaxConns + 100 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if err := ask(c); err != nil {
			t.Fatalf("connection %d: %v", n, err)
		}
		open = append(open, c)
	}
	if err := ask(open[0]); err == nil {
		t.Error("the oldest connection is still open")
	}
	if err := ask(open[len(open)-1]); err != nil {
		t.Errorf("the newest connection: %v", err)
	}
}

// TestNoBody: a POST without a body, and without a length of one, is a mistake.
func TestNoBody(t *testing.T) {
	for _, path := range []string{"/v1/check", "/v1/limits", "/check"} {
		want := map[bool]string{true: " 200 ", false: " 400 "}[path == "/check"]
		if first, _, _ := strings.Cut(send(t, serve(t, httpapi.Options{Handler: new(recorder)}), "POST "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), "\r\n"); !strings.Contains(first, want) {
			t.Errorf("%s: %q, want %s", path, first, want)
		}
	}
}

// panicking panics in place of a decision.
type panicking struct{ recorder }

func (*panicking) Decide(*users.User, netip.Addr, [][][]byte, []commands.Answer) []commands.Answer {
	panic("a fault")
}

// TestPanic: a fault ends its connection, and no other.
func TestPanic(t *testing.T) {
	addr := serve(t, httpapi.Options{Handler: new(panicking)})
	if first, _, _ := strings.Cut(send(t, addr, "GET /check HTTP/1.1\r\nHost: x\r\n\r\n"), "\r\n"); !strings.Contains(first, " 500 ") {
		t.Error(first)
	}
	if first, _, _ := strings.Cut(send(t, addr, "GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), "\r\n"); !strings.Contains(first, " 200 ") {
		t.Errorf("after it: %s", first)
	}
}
