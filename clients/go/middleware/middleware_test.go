package middleware

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// ways returns the options by which a limitgate is asked that has the limits of the tests: by Redis
// at LIMITGATE, and over HTTP at LIMITGATE_URL.
func ways(t *testing.T) map[string]Options {
	t.Helper()
	addr, url := os.Getenv("LIMITGATE"), os.Getenv("LIMITGATE_URL")
	if addr == "" || url == "" {
		t.Fatal("LIMITGATE and LIMITGATE_URL are needed: make middleware sets them")
	}
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	return map[string]Options{"redis": {Client: client, Timeout: 5 * time.Second}, "http": {URL: url + "/", Timeout: 5 * time.Second}}
}

// tenantOf returns a function of requests.
func tenantOf(name string) func(*http.Request) string {
	return func(*http.Request) string { return name }
}

// wrapped returns a server of a handler behind the middleware.
func wrapped(t *testing.T, o Options, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /items/{id}", m(h))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	a, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a, string(body)
}

var twoState = regexp.MustCompile(`^"two";r=[01];t=\d+$`)

// TestLimit: two requests a minute for a route, whatever its path, and then an honest 429.
func TestLimit(t *testing.T) {
	for name, o := range ways(t) {
		o.Tenant = tenantOf("go-" + name)
		served := 0
		s := wrapped(t, o, func(_ http.ResponseWriter, r *http.Request) {
			served++
			if d := FromContext(r.Context()); d == nil || d.LimitID != "two" {
				t.Errorf("%s: decision %+v", name, d)
			}
		})
		for n, want := range []int{200, 200, 429} {
			a, body := get(t, fmt.Sprintf("%s/items/%d", s.URL, n))
			if a.StatusCode != want || !twoState.MatchString(a.Header.Get("RateLimit")) {
				t.Errorf("%s %d: %s, RateLimit %q: %s", name, n, a.Status, a.Header.Get("RateLimit"), body)
			}
			if want == 429 && (a.Header.Get("Retry-After") == "" || a.Header.Get("Cache-Control") != "no-store" || !strings.Contains(body, `"violated-policies":["two"]`)) {
				t.Errorf("%s: %v %s", name, a.Header, body)
			}
		}
		if served != 2 {
			t.Errorf("%s: served %d", name, served)
		}
	}
}

// TestSettle: the true cost is what is taken in the end, also if the handler panics.
func TestSettle(t *testing.T) {
	for name, o := range ways(t) {
		tenant := map[string]string{"redis": "shop-ioredis", "http": "shop-http"}[name]
		o.Tenant = tenantOf(tenant)
		o.Cost = func(*http.Request) int64 { return 20 }
		o.Settle = func(_ *http.Request, status int, written int64) int64 { return written }
		s := wrapped(t, o, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "abc")
			panic(http.ErrAbortHandler)
		})
		if a, err := http.Get(s.URL + "/items/1"); err == nil {
			_ = a.Body.Close()
		}
		// The connection ends when the handler has panicked, and the cost is settled before that.
		var peek struct{ Remaining int64 }
		_, body := get(t, os.Getenv("LIMITGATE_URL")+"/v1/peek?limit=points&tenant="+tenant)
		if err := json.Unmarshal([]byte(body), &peek); err != nil {
			t.Fatal(err)
		}
		if peek.Remaining < 15 {
			t.Errorf("%s: %d are left of 20 after 3 were used", name, peek.Remaining)
		}
	}
}

// TestMistake: a mistake in the call is no way past the limits.
func TestMistake(t *testing.T) {
	for name, o := range ways(t) {
		var got error
		o.Tenant, o.OnError = tenantOf(strings.Repeat("t", 300)), func(_ *http.Request, err error) { got = err }
		s := wrapped(t, o, func(http.ResponseWriter, *http.Request) { t.Errorf("%s: served", name) })
		if a, _ := get(t, s.URL+"/items/1"); a.StatusCode != http.StatusInternalServerError || !errors.Is(got, ErrCall) {
			t.Errorf("%s: %s, %v", name, a.Status, got)
		}
	}
	for want, o := range map[error]Options{
		errOptions: {},
		errURL:     {URL: "127.0.0.1:8080", Tenant: tenantOf("a")},
		errTimeout: {Client: redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}), Tenant: tenantOf("a")},
	} {
		if _, err := New(o); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

// TestGoneClient: a request whose client has gone is limited as any other.
func TestGoneClient(t *testing.T) {
	for name, o := range ways(t) {
		o.Tenant, o.Op = tenantOf("gone-"+name), func(*http.Request) string { return "GET /gone" }
		m, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		served := 0
		h := m(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
		for range 4 {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		}
		if served != 2 {
			t.Errorf("%s: served %d, want 2", name, served)
		}
	}
}

// TestPeer: the address of a peer has neither a port nor a zone.
func TestPeer(t *testing.T) {
	for remote, want := range map[string]string{
		"203.0.113.7:80": "203.0.113.7", "203.0.113.7": "203.0.113.7", "[fe80::1%eth0]:80": "fe80::1", "2001:db8::1": "2001:db8::1", "@": "", "": "",
	} {
		if got := peer(remote); got != want {
			t.Errorf("%q: %q, want %q", remote, got, want)
		}
	}
}

// TestOp: every path gives an op that can be decided.
func TestOp(t *testing.T) {
	for path, want := range map[string]string{
		"/a": "GET /a", "/a%00b": "GET /ab", "/%FF": "GET /", "/" + strings.Repeat("a", 2000): "GET /" + strings.Repeat("a", 1019),
		"/" + strings.Repeat("%C3%A9", 2000): "GET /" + strings.Repeat("é", 509),
	} {
		if got := opOf(httptest.NewRequest(http.MethodGet, path, nil)); got != want {
			t.Errorf("%.40s: %.60q, want %.60q", path, got, want)
		}
	}
}

// TestUnreachable: without Limitgate a request goes on, or is refused, in time.
func TestUnreachable(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	addr := silent.Addr().String()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	for name, o := range map[string]Options{"redis": {Client: client}, "http": {URL: "http://" + addr}} {
		for _, closed := range []bool{false, true} {
			errs := 0
			o.Tenant, o.Timeout, o.FailClosed = tenantOf("acme"), 50*time.Millisecond, closed
			o.OnError = func(*http.Request, error) { errs++ }
			s := wrapped(t, o, func(http.ResponseWriter, *http.Request) {})
			want := map[bool]int{false: 200, true: 503}[closed]
			if a, _ := get(t, s.URL+"/items/1"); a.StatusCode != want || errs != 1 {
				t.Errorf("%s, closed %t: %s with %d errors", name, closed, a.Status, errs)
			}
		}
	}
}

// TestRetry waits for what Retry-After says and a random time more.
func TestRetry(t *testing.T) {
	for _, row := range []struct {
		answers []string // STATUS and perhaps Retry-After
		status  int
		waits   string
	}{
		{[]string{"200"}, 200, "[]"},
		{[]string{"429 2", "200"}, 200, "[2.1s]"},
		{[]string{"429 1", "503", "429", "200"}, 200, "[1.1s 200ms 400ms]"},
		{[]string{"429 1", "429 1", "429 1", "429 1", "200"}, 429, "[1.1s 1.2s 1.4s]"},
		{[]string{"429 61"}, 429, "[]"},
		{[]string{"429 60"}, 429, "[]"},
		{[]string{"429 9223372036854775807"}, 429, "[]"},
		{[]string{"500"}, 500, "[]"},
	} {
		waits := []time.Duration{}
		n := 0
		r := Retry{random: func() float64 { return 0.5 }, wait: func(_ context.Context, d time.Duration) error {
			waits = append(waits, d)
			return nil
		}}
		a, err := r.Do(context.Background(), func(context.Context) (*http.Response, error) {
			w := httptest.NewRecorder()
			status, after, _ := strings.Cut(row.answers[n], " ")
			n++
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			code := 0
			_, _ = fmt.Sscan(status, &code)
			w.WriteHeader(code)
			return w.Result(), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
		if a.StatusCode != row.status || fmt.Sprint(waits) != row.waits {
			t.Errorf("%v: %d after %v, want %d after %s", row.answers, a.StatusCode, waits, row.status, row.waits)
		}
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Retry{}.Do(cancelled, func(context.Context) (*http.Response, error) {
		w := httptest.NewRecorder()
		w.WriteHeader(http.StatusTooManyRequests)
		return w.Result(), nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// ofRedisClient answers as a Redis does, which has no RL.CHECK.
type ofRedisClient struct{}

func (ofRedisClient) Do(ctx context.Context, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetErr(replyError(fmt.Sprintf("ERR unknown command '%s', with args beginning with: 'acme' ", args[0])))
	return cmd
}

// replyError is an error reply.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

// TestRedisInPlaceOfLimitgate: a client of the wrong server is a mistake, which has a sentence.
func TestRedisInPlaceOfLimitgate(t *testing.T) {
	var got error
	s := wrapped(t, Options{Client: ofRedisClient{}, Tenant: tenantOf("acme"), OnError: func(_ *http.Request, err error) { got = err }}, func(http.ResponseWriter, *http.Request) {})
	if a, _ := get(t, s.URL+"/items/1"); a.StatusCode != http.StatusInternalServerError || !errors.Is(got, ErrCall) || !strings.Contains(got.Error(), "the server is a Redis, and no limitgate: ") {
		t.Errorf("%d, %v", a.StatusCode, got)
	}
}
