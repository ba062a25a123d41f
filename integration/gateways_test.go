//go:build gateways

package integration

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// An httpGateway is a program that asks Limitgate for its clients, by an example of this repository.
type httpGateway struct {
	name, program string
	// example is the file of the configuration below examples/http, and others lie beside it.
	example string
	others  []string
	flags   []string // FILE and FOLDER stand for those of the configuration
	// closed means that nothing goes on without Limitgate.
	closed bool
}

var gateways = []httpGateway{
	{name: "nginx", program: "nginx", example: "nginx/fail-open.conf", flags: nginxFlags},
	{name: "nginx", program: "nginx", example: "nginx/quiet.conf", flags: nginxFlags},
	{name: "nginx", program: "nginx", example: "nginx/fail-closed.conf", flags: nginxFlags, closed: true},
	{name: "caddy", program: "caddy", example: "Caddyfile", flags: []string{"run", "--adapter", "caddyfile", "--config", "FILE"}},
	{name: "haproxy", program: "haproxy", example: "haproxy.cfg", others: []string{"haproxy.lua"}, flags: []string{"-C", "FOLDER", "-f", "FILE"}},
}

var nginxFlags = []string{"-p", "FOLDER", "-c", "FILE", "-e", "stderr", "-g", "daemon off; master_process off; pid FOLDER/pid;"}

// origin is a service behind a gateway, which counts requests.
type origin struct {
	mu    sync.Mutex // guards the fields below
	asked []string   // METHOD URI and body
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	o.mu.Lock()
	o.asked = append(o.asked, r.Method+" "+r.RequestURI+" "+string(body))
	o.mu.Unlock()
	fmt.Fprintln(w, "served")
}

func (o *origin) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.asked) == 0 {
		return ""
	}
	return o.asked[len(o.asked)-1]
}

// TestGateways runs each gateway by its example: denials are honest, forged headers change nothing,
// and a gateway whose Limitgate is killed does what its example says.
func TestGateways(t *testing.T) {
	for _, g := range gateways {
		t.Run(g.name+"/"+filepath.Base(g.example), func(t *testing.T) {
			program, err := exec.LookPath(g.program)
			if err != nil {
				t.Fatalf("%v: scripts/provision.sh gateways installs it", err)
			}
			behind := new(origin)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			service := &http.Server{Handler: behind}
			go func() { _ = service.Serve(l) }()
			defer func() { _ = service.Close() }()

			limiter, addr := serveHTTP(t, "../examples/http/limits.yaml", "--http-gateway", g.name)
			front := g.start(t, program, addr, l.Addr().String())
			g.drive(t, front, behind)
			_ = limiter.stop(syscall.SIGKILL)
			g.driveAlone(t, front, behind)
			t.Logf("%s, %s", version(program), g.example)
		})
	}
}

// start starts the gateway on a free port, and returns its address.
func (g *httpGateway) start(t *testing.T, program, limitgate, service string) (front string) {
	t.Helper()
	front = freeAddress(t)
	folder := t.TempDir()
	between := freeAddress(t) // of a listener inside of a gateway
	for _, name := range append([]string{g.example}, g.others...) {
		content, err := os.ReadFile(filepath.Join("../examples/http", name))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("127.0.0.1:8000", front, "127.0.0.1:8080", limitgate, "127.0.0.1:8081", between, "127.0.0.1:3000", service).Replace(string(content))
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var flags []string
	for _, f := range g.flags {
		flags = append(flags, strings.NewReplacer("FILE", filepath.Join(folder, filepath.Base(g.example)), "FOLDER", folder).Replace(f))
	}
	cmd := exec.Command(program, flags...)
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if said, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s:\n%s", g.program, said)
		}
	})
	await(t, front)
	return front
}

// freeAddress returns a loopback address on which nothing listens now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// await waits until an address accepts connections.
func await(t *testing.T, addr string) {
	t.Helper()
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return
		}
	}
	t.Fatalf("nothing listens on %s", addr)
}

// askGateway sends a request through the gateway.
func askGateway(t *testing.T, front, method, path string, forged bool) (code int, h http.Header) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+front+path, strings.NewReader(map[bool]string{true: "a body"}[method == "POST"]))
	if err != nil {
		t.Fatal(err)
	}
	if forged {
		for _, name := range []string{"X-Original-URI", "X-Original-URL", "X-Forwarded-Uri"} {
			r.Header.Set(name, "/free")
		}
		for _, name := range []string{"X-Original-Method", "X-Forwarded-Method"} {
			r.Header.Set(name, "GET")
		}
		for _, name := range []string{"X-Forwarded-For", "X-Real-IP", "Forwarded"} {
			r.Header.Set(name, map[bool]string{true: "for=6.6.6.6", false: "6.6.6.6"}[name == "Forwarded"])
		}
		r.Header.Set("X-Tenant", "other")
	}
	a, err := (&http.Client{Timeout: 10 * time.Second}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	_, _ = io.Copy(io.Discard, a.Body)
	return a.StatusCode, a.Header
}

// drive sends requests while Limitgate runs.
func (g *httpGateway) drive(t *testing.T, front string, behind *origin) {
	t.Helper()
	for n := range 2 {
		if code, h := askGateway(t, front, "POST", fmt.Sprintf("/pay/%d?x=1", n), n == 1); code != http.StatusOK || h.Get("RateLimit") == "" {
			t.Errorf("request %d: %d, RateLimit %q", n, code, h.Get("RateLimit"))
		}
	}
	if got := behind.last(); got != "POST /pay/1?x=1 a body" {
		t.Errorf("the service was asked %q", got)
	}
	for _, forged := range []bool{false, true} {
		code, h := askGateway(t, front, "POST", "/pay/3", forged)
		if code != http.StatusTooManyRequests || !strings.HasPrefix(h.Get("RateLimit"), `"payments";r=0;t=`) || h.Get("Retry-After") == "" {
			t.Errorf("denied, forged %t: %d, RateLimit %q, Retry-After %q", forged, code, h.Get("RateLimit"), h.Get("Retry-After"))
		}
	}
	if got := behind.last(); got != "POST /pay/1?x=1 a body" {
		t.Errorf("a denied request reached the service: %q", got)
	}
	attackGateway(t, front, behind)
	// One address searches once a minute, whatever it says of itself.
	for n, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		if code, _ := askGateway(t, front, "GET", "/search?q=1", n == 1); code != want {
			t.Errorf("search %d: %d, want %d", n, code, want)
		}
	}
}

// attackGateway sends requests that a gateway, or Limitgate behind it, may refuse to read: none of
// them is a way past a limit that is used up.
func attackGateway(t *testing.T, front string, behind *origin) {
	t.Helper()
	header := func(n, length int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "C%d: %s\r\n", i, strings.Repeat("c", length))
		}
		return b.String()
	}
	for name, request := range map[string]string{
		"long headers":             "POST /pay HTTP/1.1\r\n" + header(4, 8170),
		"longer headers":           "POST /pay HTTP/1.1\r\n" + header(10, 8170),
		"300 KB of headers":        "POST /pay HTTP/1.1\r\n" + header(40, 8170),
		"a control character":      "POST /pay HTTP/1.1\r\nX-A: \x01\r\n",
		"a long path":              "POST /pay/" + strings.Repeat("a", 15_150) + " HTTP/1.1\r\n",
		"a longer path":            "POST /pay/" + strings.Repeat("a", 15_900) + " HTTP/1.1\r\n",
		"credentials":              "POST /pay HTTP/1.1\r\nX-Limitgate-Authorization: Basic eDp5\r\n",
		"an encoded path":          "POST /%70ay/1 HTTP/1.1\r\n",
		"bytes that are no text":   "POST /%70ay/%ff HTTP/1.1\r\n",
		"a control byte in a path": "POST /%70ay;%01 HTTP/1.1\r\n",
		"an absolute URI":          "POST http://" + front + "/pay HTTP/1.1\r\n",
		"a scheme":                 "POST foo:/pay HTTP/1.1\r\n",
		"hop by hop":               "POST /pay HTTP/1.1\r\nConnection: close, X-Original-URI, X-Original-Method, X-Forwarded-Uri\r\n",
		"an expectation":           "POST /pay HTTP/1.1\r\nExpect: 100-continue\r\n",
	} {
		before := behind.last()
		c, err := net.Dial("tcp", front)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		go func() { _, _ = io.WriteString(c, request+"Host: "+front+"\r\nContent-Length: 0\r\n\r\n") }()
		status := make([]byte, len("HTTP/1.1 200"))
		_, err = io.ReadFull(c, status) // a gateway may close the connection instead
		_ = c.Close()
		if err == nil && string(status[9:]) == "200" || behind.last() != before {
			t.Errorf("%s: %s, and the service was asked %.60q", name, status, behind.last())
		}
	}
}

// driveAlone sends requests when Limitgate is gone.
func (g *httpGateway) driveAlone(t *testing.T, front string, behind *origin) {
	t.Helper()
	want := http.StatusOK
	if g.closed {
		want = http.StatusServiceUnavailable
	}
	for _, path := range []string{"/pay/9", "/pay/10"} {
		since := time.Now()
		code, _ := askGateway(t, front, "POST", path, false)
		if code != want {
			t.Errorf("without Limitgate: %d, want %d", code, want)
		}
		if took := time.Since(since); took > 5*time.Second {
			t.Errorf("without Limitgate an answer takes %v", took)
		}
	}
	if got := behind.last(); !g.closed && got != "POST /pay/10 a body" {
		t.Errorf("without Limitgate the service was asked %q", got)
	}
}

// version returns what a program says of its version.
func version(program string) string {
	for _, flag := range []string{"-v", "version"} {
		out, err := exec.Command(program, flag).CombinedOutput()
		if err == nil {
			first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
			return filepath.Base(program) + ": " + first
		}
	}
	return program
}
