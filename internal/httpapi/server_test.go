package httpapi_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/httpapi"
	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

var update = flag.Bool("update", false, "write the expected answers into the transcripts, and docs/openapi.json")

// start is the first time of a clock.
var start = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)

// clock is a time that tests move.
type clock struct{ micros atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.micros.Store(start.UnixMicro())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMicro(c.micros.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

// newHandler returns a handler of commands on a memory store.
func newHandler(tb testing.TB, c *clock, auth *users.Authenticator) *commands.Handler {
	tb.Helper()
	content, err := os.ReadFile("../../commands/testdata/limits.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	set, _, err := config.ParseLimits("limits.yaml", content, limit.CompileOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	addrs, err := limit.NewAddrHasher([]byte("a secret for tests only"), limit.Prefixes{})
	if err != nil {
		tb.Fatal(err)
	}
	l := limiter.New(limiter.Options{Store: memory.New(memory.Options{}), Addrs: addrs, Timeout: time.Second, Now: c.now}, set)
	return commands.NewHandler(commands.Options{Limiter: l, Version: "test", Store: "memory", Now: c.now, Users: auth})
}

// serve runs a server on a loopback address, and returns that address.
func serve(tb testing.TB, o httpapi.Options) (addr string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	serveOn(tb, o, l)
	return l.Addr().String()
}

func serveOn(tb testing.TB, o httpapi.Options, l net.Listener) *httpapi.Server {
	tb.Helper()
	return serveBound(tb, o, httpapi.Bound(l))
}

// serveBound runs a server on a listener that is bounded.
func serveBound(tb testing.TB, o httpapi.Options, l net.Listener) *httpapi.Server {
	tb.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.ShutdownTimeout = time.Second
	s := httpapi.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, l) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	return s
}

// testUsers returns the users of testdata.
func testUsers(tb testing.TB) *users.Authenticator {
	tb.Helper()
	content, err := os.ReadFile("../../commands/testdata/users.acl")
	if err != nil {
		tb.Fatal(err)
	}
	set, err := users.Parse(content)
	if err != nil {
		tb.Fatal(err)
	}
	return users.NewAuthenticator(set, nil)
}

// optionsOf returns the options of a transcript, whose name begins with that of a gateway or with
// that of what it shows.
func optionsOf(tb testing.TB, name string, c *clock) httpapi.Options {
	o := httpapi.Options{Now: c.now, Addresses: httpapi.AddressRule{Header: "X-Forwarded-For", Hops: 1}}
	var auth *users.Authenticator
	switch word, _, _ := strings.Cut(name, "."); word {
	case "users":
		auth = testUsers(tb)
	case "secrets":
		o.TenantHeader, o.CostHeader, o.DimHeaders = "X-Api-Key", "X-Cost", []httpapi.DimHeader{{Dim: "user", Header: "X-User"}}
	default:
		o.Gateway, _ = httpapi.ParseGateway(word)
	}
	o.Handler = newHandler(tb, c, auth)
	return o
}

// TestTranscripts sends the requests of testdata/*.txt and compares the answers. A line that begins
// with > is a method, a URI and perhaps headers in [] and a body; the answer is its status, headers
// and body. A line that begins with + moves the clock.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d transcripts: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, filepath.Base(file), string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("got:\n%s", got)
			}
		})
	}
}

// replay returns a transcript with the answers that its requests get.
func replay(t *testing.T, name, transcript string) string {
	t.Helper()
	c := newClock()
	addr := serve(t, optionsOf(t, name, c))
	var out strings.Builder
	for line := range strings.Lines(transcript) {
		switch {
		case strings.HasPrefix(line, "#"), line == "\n":
			out.WriteString(line)
		case strings.HasPrefix(line, "+ "):
			d, err := time.ParseDuration(strings.TrimSpace(line[2:]))
			if err != nil {
				t.Fatal(err)
			}
			c.advance(d)
			out.WriteString(line)
		case strings.HasPrefix(line, "> "):
			out.WriteString(line + answer(t, addr, parseRequest(t, addr, strings.TrimSpace(line[2:]))))
		}
	}
	return out.String()
}

// parseRequest makes a request of METHOD URI [HEADER: VALUE] BODY.
func parseRequest(t *testing.T, addr, line string) *http.Request {
	t.Helper()
	method, rest, _ := strings.Cut(line, " ")
	uri, rest, _ := strings.Cut(rest, " ")
	headers := http.Header{}
	for len(rest) > 1 && rest[0] == '[' && rest[1] >= 'A' && rest[1] <= 'Z' {
		header, after, _ := strings.Cut(rest[1:], "]")
		key, value, _ := strings.Cut(header, ": ")
		headers.Add(key, value)
		rest = strings.TrimPrefix(after, " ")
	}
	r, err := http.NewRequest(method, "http://"+addr+"/", strings.NewReader(rest))
	if err != nil {
		t.Fatal(err)
	}
	r.URL.Opaque = uri // as it is written
	r.Header = headers
	return r
}

// answer sends a request, and returns the answer as text. All its fields that have structure can be
// parsed as RFC 9651 says.
func answer(t *testing.T, addr string, r *http.Request) string {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	r.Close = true
	if err := r.Write(c); err != nil {
		t.Fatal(err)
	}
	a, err := http.ReadResponse(bufio.NewReader(c), r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.Status + "\n" + showHeader(t, a.Header) + string(body) + newlineAfter(body)
}

func newlineAfter(body []byte) string {
	if len(body) > 0 && body[len(body)-1] != '\n' {
		return "\n"
	}
	return ""
}

// showHeader returns the fields of an answer that do not depend on the connection.
func showHeader(t *testing.T, h http.Header) string {
	t.Helper()
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		switch name {
		case "Date", "Connection", "Content-Length":
			continue
		}
		for _, value := range h[name] {
			fmt.Fprintf(&out, "%s: %s\n", name, value)
		}
		checkStructured(t, name, h[name])
	}
	return out.String()
}

// checkStructured parses the fields about limits: those that have structure are lists.
func checkStructured(t *testing.T, name string, values []string) {
	t.Helper()
	if !strings.Contains(name, "Ratelimit") && name != "Retry-After" {
		return
	}
	list, err := httpsfv.UnmarshalList(values)
	if err != nil || len(list) == 0 {
		t.Errorf("%s: %q: %v", name, values, err)
		return
	}
	for _, member := range list {
		switch value := member.(httpsfv.Item).Value.(type) {
		case string:
			if name != "Ratelimit" && name != "Ratelimit-Policy" && !strings.HasSuffix(name, "Near-Limit") {
				t.Errorf("%s: %q has a text", name, values)
			}
		case int64:
			if value < 0 {
				t.Errorf("%s: %q is negative", name, values)
			}
		default:
			t.Errorf("%s: %q has a %T", name, values, value)
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
