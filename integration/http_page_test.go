package integration

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

var curlWords = regexp.MustCompile(`'[^']*'|\S+`)

// curl sends the request of a command of curl, and returns the body of the answer. It knows -s, -d
// and a URL, so that the test needs no curl.
func curl(t *testing.T, command, addr string) string {
	t.Helper()
	var url string
	var body io.Reader
	method := http.MethodGet
	words := curlWords.FindAllString(command, -1)
	for i := 1; i < len(words); i++ {
		switch word := strings.Trim(words[i], "'"); word {
		case "-s":
		case "-d":
			i++
			method, body = http.MethodPost, strings.NewReader(strings.Trim(words[i], "'"))
		default:
			url = "http://" + strings.Replace(word, "127.0.0.1:8080", addr, 1)
		}
	}
	r, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	defer func() { _ = a.Body.Close() }()
	content, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestEnvoyPage runs the requests of docs/envoy.md, and lint with its extensions.
func TestEnvoyPage(t *testing.T) {
	node, ports := redistest.Start(t), freePorts(t, 2)
	web, debug := "127.0.0.1:"+ports[0], "127.0.0.1:"+ports[1]
	serve(t, "", "--redis", node.Addr, "--decision-timeout", "5s", "--rls", "127.0.0.1:0", "--rls-config", "../examples/envoy/ratelimit/config", "--rls-http", web, "--rls-debug", debug)
	requests := 0
	for _, e := range examples(t, "../docs/envoy.md") {
		var got string
		switch {
		case strings.HasPrefix(e.command, "curl "):
			requests++
			got = curl(t, strings.NewReplacer("127.0.0.1:8082", web, "127.0.0.1:8083", debug).Replace(e.command), "")
		case strings.HasPrefix(e.command, "bin/limitgate limits lint "):
			got, _, _ = run(t, nil, strings.Fields(strings.ReplaceAll(e.command, "examples/", "../examples/"))[1:]...)
		default:
			continue
		}
		got = numbers.ReplaceAllString(strings.ReplaceAll(got, "../examples/", "examples/"), "N")
		for _, want := range e.shows {
			if want = numbers.ReplaceAllString(want, "N"); !strings.Contains(got, want) {
				t.Errorf("$ %s\n%s, want %s", e.command, got, want)
			}
		}
	}
	if requests != 2 {
		t.Errorf("the page has %d requests", requests)
	}
}

// numbers are left out when answers are compared: times pass.
var numbers = regexp.MustCompile(`\d+`)

// TestHTTPPage runs the commands of docs/http.md.
func TestHTTPPage(t *testing.T) {
	p, addr := serveHTTP(t, "../examples/limits.yaml")
	all := examples(t, "../docs/http.md")
	if len(all) < 5 {
		t.Fatalf("the page has %d commands", len(all))
	}
	for _, e := range all {
		got := numbers.ReplaceAllString(curl(t, e.command, addr), "N")
		for _, want := range e.shows {
			if want = numbers.ReplaceAllString(want, "N"); !strings.HasPrefix(got, want) {
				t.Errorf("$ %s\n%s, want %s", e.command, got, want)
			}
		}
	}
	metrics := p.get("/metrics")
	if !strings.Contains(metrics, `limitgate_http_answers_total{code="400"} 1`) || !strings.Contains(metrics, "limitgate_http_connections 1") {
		t.Errorf("metrics:\n%s", metrics)
	}
}

// TestJSONPolicy: a limits file in JSON, that of docs/http.md, is all that a sidecar has, on a Unix
// socket that replaces one that a killed process has left.
func TestJSONPolicy(t *testing.T) {
	page, err := os.ReadFile("../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```json\n")
	policy, _, _ := strings.Cut(after, "```")
	if file, err := os.ReadFile("../examples/http/sidecar/policy.json"); err != nil || string(file) != policy {
		t.Errorf("the policy of the example is another one, %v:\n%s", err, file)
	}
	folder := t.TempDir()
	if err := os.WriteFile(folder+"/policy.json", []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		socket := folder + "/s"
		p, _ := launch(t, exec.Command(binaries.release, "serve", "--listen", "127.0.0.1:0", "--admin", "", "--http", "unix:"+socket,
			"--http-gateway", "nginx", "--limits", folder+"/policy.json", "--retry-jitter", "0"), regexp.MustCompile(`http=`+socket))
		client := &http.Client{Transport: unixTransport(socket)}
		codes := map[int]int{}
		for range 6 {
			r, err := http.NewRequest(http.MethodGet, "http://sidecar/check", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Original-Method", "POST")
			r.Header.Set("X-Original-URI", "/login")
			r.Header.Set("X-Forwarded-For", "203.0.113.7")
			a, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = a.Body.Close()
			codes[a.StatusCode]++
		}
		if codes[200] != 5 || codes[429] != 1 {
			t.Errorf("answers %v, want 5 of 200 and 1 of 429", codes)
		}
		info, err := os.Stat(socket)
		if err != nil || info.Mode().Perm() != 0o660 {
			t.Errorf("the socket: %v, %v", info, err)
		}
		_ = p.cmd.Process.Kill() // leaves the socket
		<-p.exit
		p.exit <- nil
	}
}

// unixTransport sends requests to a Unix socket.
func unixTransport(path string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}
}
