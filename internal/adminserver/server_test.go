package adminserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"strings"
	"testing"
	"time"
)

// adminPatience is the deadline of a wait in these tests.
const adminPatience = 20 * time.Second

// startAdmin serves an admin address with bounds, and returns it. Large receives the
// result of a reply that is larger than the kernel's socket buffers.
func startAdmin(t *testing.T, bounds bounds, large chan<- error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /large", func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(bytes.Repeat([]byte("x"), 64<<20))
		large <- err
	})
	mux.HandleFunc("GET /slow", TakingLong(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	mux.HandleFunc("GET /profile", TakingLong(pprof.Profile))
	s := newServer(withoutBody(mux), bounds)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// adminClient returns a connection that has sent a text, and has read the reply if the
// text is a whole request.
func adminClient(t *testing.T, addr, send string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, send); err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(send, "GET /healthz") && strings.HasSuffix(send, "\r\n\r\n") {
		reply, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, reply.Body)
		_ = reply.Body.Close()
	}
	return c
}

const probe = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"

// ended reports whether the server has closed a connection within some time.
func ended(c net.Conn, within time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(within))
	_, err := io.Copy(io.Discard, c)
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// TestAdminTimeouts: each kind of slow client loses its connection.
func TestAdminTimeouts(t *testing.T) {
	const short = 300 * time.Millisecond
	large := make(chan error, 1)
	addr := startAdmin(t, bounds{conns: 64, read: short, write: short, idle: short}, large)
	for name, send := range map[string]string{
		"silent":         "",
		"idle":           probe,
		"half a header":  "GET /healthz HTTP/1.1\r\nHost:",
		"half a body":    "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf\r\n",
		"no end of body": "GET /profile HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			if c := adminClient(t, addr, send); !ended(c, adminPatience) {
				t.Error("the connection is still there")
			}
		})
	}
	t.Run("not reading", func(t *testing.T) {
		adminClient(t, addr, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
		select {
		case err := <-large:
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the reply was written: %v", err)
			}
		case <-time.After(adminPatience):
			t.Error("the reply is still being written")
		}
	})
}

// TestAdminBound: for any number of clients that hold connections and for any use of
// them, the number of connections stays within the bound, and a probe is answered.
func TestAdminBound(t *testing.T) {
	const most, clients = 8, 40
	for name, send := range map[string]string{
		"idle": probe, "silent": "", "half a header": "GET /healthz HTTP/1.1\r\nHost:", "at work": "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			addr := startAdmin(t, bounds{conns: most, read: time.Minute, write: time.Minute, idle: time.Minute}, nil)
			over := make(chan struct{}, clients)
			for range clients {
				c := adminClient(t, addr, send)
				go func() { _, _ = io.Copy(io.Discard, c); over <- struct{}{} }()
			}
			adminClient(t, addr, probe)
			late := time.After(adminPatience)
			for n := range clients + 1 - most {
				select {
				case <-over:
				case <-late:
					t.Fatalf("%d of %d connections have been ended, and there may be %d", n, clients+1, most)
				}
			}
		})
	}
}

// TestAdminEndsIdleFirst: at the bound an idle connection is closed before an active one.
func TestAdminEndsIdleFirst(t *testing.T) {
	c := newConns(2)
	var conns [3]net.Conn
	for i := range conns {
		var peer net.Conn
		conns[i], peer = net.Pipe()
		defer func() { _ = peer.Close() }()
	}
	c.changed(conns[0], http.StateNew)
	c.changed(conns[0], http.StateActive)
	c.changed(conns[1], http.StateNew)
	c.changed(conns[2], http.StateNew)
	c.changed(conns[1], http.StateIdle) // it is closed already
	c.changed(conns[1], http.StateClosed)
	if _, there := c.all[conns[0]]; !there || len(c.all) != 2 {
		t.Errorf("the one at work has been ended: %v", c.all)
	}
	if _, err := conns[1].Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the waiting one is still there: %v", err)
	}
}

// TestAdminProfile: a profile may take longer than the read and write timeouts.
func TestAdminProfile(t *testing.T) {
	addr := startAdmin(t, bounds{conns: 8, read: 100 * time.Millisecond, write: 500 * time.Millisecond, idle: time.Minute}, nil)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), adminPatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/profile?seconds=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reply.Body.Close() }()
	profile, err := io.ReadAll(reply.Body)
	if took := time.Since(began); err != nil || reply.StatusCode != http.StatusOK || len(profile) == 0 || took < time.Second {
		t.Errorf("%s after %s, %d bytes, %v", reply.Status, took, len(profile), err)
	}
}
