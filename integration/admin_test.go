package integration

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestAdminOthers: the admin address says what is there, to those who look for something else.
func TestAdminOthers(t *testing.T) {
	p := serve(t, "")
	for _, row := range []struct {
		method, path, body, want string
		code                     int
	}{
		{"GET", "/v1/limits", "", "checks over HTTP are at the address of --http", http.StatusNotFound},
		{"POST", "/v1/check", "{}", "checks over HTTP are sent to the address of --http", http.StatusBadRequest},
		{"POST", "/metrics", "", "", http.StatusMethodNotAllowed},
	} {
		req, err := http.NewRequestWithContext(t.Context(), row.method, "http://"+p.admin+row.path, strings.NewReader(row.body))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(reply.Body)
		_ = reply.Body.Close()
		if reply.StatusCode != row.code || !strings.Contains(string(text), row.want) {
			t.Errorf("%s %s: %d %s", row.method, row.path, reply.StatusCode, text)
		}
	}
}

// TestAdminHeld: clients that hold connections to the admin address take no descriptors
// from clients that ask for decisions, and do not lock out a probe.
func TestAdminHeld(t *testing.T) {
	const clients = 600 // more than there are descriptors
	script := `ulimit -n 512 && exec "$0" serve --listen 127.0.0.1:0 --admin 127.0.0.1:0`
	p, found := launch(t, exec.Command("sh", "-c", script, binaries.release), listening)
	p.addr, p.admin = found[1], found[2]
	for range clients {
		c, err := net.Dial("tcp", p.admin)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(startTimeout))
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		reply, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
	}
	if got, err := check(p.client(), "t", "-", "-"); err != nil {
		t.Errorf("a check beside them gets %+v, %v", got, err)
	}
	if ready := p.get("/readyz"); ready == "" {
		t.Error("a probe beside them gets no answer")
	}
}
