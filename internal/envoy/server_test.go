package envoy

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/limitgate/limitgate/internal/grpcserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serveGRPC serves a service until the test ends, and returns a connection to it and a function that ends
// the server.
func serveGRPC(t testing.TB, s *Service) (conn *grpc.ClientConn, end func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(s, ServerOptions{ShutdownTimeout: 5 * time.Second, Log: slog.New(slog.DiscardHandler)})
	server.SetHealthy(true)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, l) }()
	conn, err = grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	end = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		_ = conn.Close()
		end()
	})
	return conn, end
}

// TestServer decides over gRPC, answers health checks, refuses a message that is too large, survives a
// panic, and drains.
func TestServer(t *testing.T) {
	s := newService(t, Behaviour{ResponseHeaders: &HeaderNames{"X-Limit", "X-Left", "X-Reset"}})
	conn, end := serveGRPC(t, s)
	client, health := rls.NewRateLimitServiceClient(conn), healthpb.NewHealthClient(conn)
	req := &rls.RateLimitRequest{Domain: "mesh", Descriptors: []*ratelimit.RateLimitDescriptor{descriptor(t, "a=1")}}
	for i := range 6 {
		resp, err := client.ShouldRateLimit(t.Context(), req)
		if err != nil || (resp.GetOverallCode() == rls.RateLimitResponse_OK) != (i < 5) {
			t.Fatalf("request %d: %v, %v", i, resp, err)
		}
		names := ""
		for _, h := range resp.GetResponseHeadersToAdd() {
			names += h.GetKey() + " "
		}
		if want := map[bool]string{true: "X-Limit X-Left X-Reset ", false: "X-Limit X-Left X-Reset Retry-After "}[i < 5]; names != want {
			t.Errorf("request %d has the fields %s", i, names)
		}
	}
	for _, name := range []string{"", "ratelimit"} {
		if h, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: name}); err != nil || h.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v", name, h, err)
		}
	}
	large := &rls.RateLimitRequest{Domain: strings.Repeat("x", grpcserver.MaxMessage), Descriptors: req.GetDescriptors()}
	if _, err := client.ShouldRateLimit(t.Context(), large); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a large message: %v", err)
	}
	watching, err := health.Watch(t.Context(), &healthpb.HealthCheckRequest{Service: "ratelimit"})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = watching.Recv()
	go end()
	if h, err := watching.Recv(); err != nil || h.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("while draining: %v, %v", h, err)
	}
}

// TestPanic checks that a panic is the error of one request.
func TestPanic(t *testing.T) {
	s := newService(t, Behaviour{})
	broken := true
	s.opts.HashAddr = func(dst []byte, _ string) []byte {
		if broken {
			panic("broken")
		}
		return append(dst, 'h')
	}
	conn, _ := serveGRPC(t, s)
	client := rls.NewRateLimitServiceClient(conn)
	req := &rls.RateLimitRequest{Domain: "mesh", Descriptors: []*ratelimit.RateLimitDescriptor{descriptor(t, "remote_address=192.0.2.1")}}
	if _, err := client.ShouldRateLimit(t.Context(), req); status.Code(err) != codes.Internal {
		t.Errorf("a panic: %v", err)
	}
	broken = false
	if _, err := client.ShouldRateLimit(t.Context(), req); err != nil {
		t.Errorf("the next request: %v", err)
	}
}

// TestJSON checks the status codes over HTTP.
func TestJSON(t *testing.T) {
	s := newService(t, Behaviour{})
	for _, c := range []struct {
		body string
		code int
		want string
	}{
		{`{"domain":"mesh","descriptors":[{"entries":[{"key":"b","value":"x"}]}],"hitsAddend":3}`, 200, `"overallCode":"OK"`},
		{`{"domain":"mesh","descriptors":[{"entries":[{"key":"b","value":"x"}]}],"hits_addend":3}`, 429, `"overallCode":"OVER_LIMIT"`},
		{`{"domain":"mesh"}`, 400, "rate limit descriptor list must not be empty; write for example " + ExampleJSON},
		{`{"domain":"mesh","unknown":1}`, 400, "unknown field"},
		{`{`, 400, "parse request"},
		{strings.Repeat(" ", maxJSON+1), 400, "too large"},
	} {
		w := httptest.NewRecorder()
		s.JSON(w, httptest.NewRequest(http.MethodPost, "/json", strings.NewReader(c.body)))
		if got := strings.ReplaceAll(w.Body.String(), `": "`, `":"`); w.Code != c.code || !strings.Contains(got, c.want) {
			t.Errorf("%.60s: %d %s", c.body, w.Code, got)
		}
	}
}

// TestJSONOfPages: the page of another site takes no units.
func TestJSONOfPages(t *testing.T) {
	s := newService(t, Behaviour{})
	for name, row := range map[string]struct {
		field, value string
		code         int
	}{
		"a page":           {"Origin", "https://example.com", http.StatusForbidden},
		"a form of a page": {"Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		"an address bar":   {"Sec-Fetch-Site", "none", http.StatusOK},
	} {
		r := httptest.NewRequest(http.MethodPost, "/json", strings.NewReader(`{"domain":"mesh","descriptors":[{"entries":[{"key":"b","value":"x"}]}]}`))
		r.Header.Set(row.field, row.value)
		w := httptest.NewRecorder()
		if s.JSON(w, r); w.Code != row.code {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// FuzzShouldRateLimit checks that no request ends the process, and that a status belongs to each
// descriptor.
func FuzzShouldRateLimit(f *testing.F) {
	seed := &rls.RateLimitRequest{Domain: "mesh", Descriptors: []*ratelimit.RateLimitDescriptor{
		descriptor(f, "a=1 hits=3 limit=5/6*2"), descriptor(f, "q1=x"), descriptor(f, "q2=y refund=7"), descriptor(f, "zero=1 vip=2"),
	}}
	wire, err := proto.Marshal(seed)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(wire)
	seed.Domain = "plans"
	if wire, err = proto.Marshal(seed); err != nil {
		f.Fatal(err)
	}
	f.Add(wire)
	s := newService(f, Behaviour{ResponseHeaders: &HeaderNames{}, Metadata: true, NearLimit: 0.8})
	f.Fuzz(func(t *testing.T, wire []byte) {
		var req rls.RateLimitRequest
		if proto.Unmarshal(wire, &req) != nil {
			return
		}
		resp, err := s.ShouldRateLimit(t.Context(), &req)
		if err != nil {
			return
		}
		if len(resp.GetStatuses()) != len(req.GetDescriptors()) {
			t.Errorf("%d statuses of %d descriptors", len(resp.GetStatuses()), len(req.GetDescriptors()))
		}
		if _, err := proto.Marshal(resp); err != nil {
			t.Errorf("the response cannot be sent: %v", err)
		}
	})
}
