package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	traceID  = "4bf92f3577b34da6a3ce929d0e0e4736"
	callerID = "00f067aa0ba902b7"
)

// collector receives spans by OTLP over HTTP.
type collector struct {
	mu       sync.Mutex // guards the fields below
	spans    []*tracepb.Span
	resource string // of the last spans
	sent     bytes.Buffer
}

// newCollector starts a collector, which wants a header.
func newCollector(t *testing.T, header, value string) (c *collector, url string) {
	c = new(collector)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var request coltracepb.ExportTraceServiceRequest
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get(header) != value {
			t.Errorf("%s %s: %v", r.URL, r.Header, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sent.Write(body)
		for _, ofResource := range request.ResourceSpans {
			c.resource = fmt.Sprint(ofResource.Resource)
			for _, ofScope := range ofResource.ScopeSpans {
				c.spans = append(c.spans, ofScope.Spans...)
			}
		}
	}))
	t.Cleanup(s.Close)
	return c, s.URL
}

// received returns the spans that have arrived.
func (c *collector) received() []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans
}

// traceparent returns the trace context of a caller.
func traceparent(caller, flags string) string { return "00-" + traceID + "-" + caller + "-" + flags }

// attribute returns the value of an attribute, or "".
func attribute(s *tracepb.Span, name string) string {
	for _, a := range s.Attributes {
		if a.Key == name {
			if text := a.Value.GetStringValue(); text != "" {
				return text
			}
			return fmt.Sprint(a.Value.GetIntValue())
		}
	}
	return ""
}

// TestTraces checks that a pipeline of traced checks is one span of its caller, that a check over HTTP
// is one, too, and that no address of a client reaches the collector. Without the setting the same
// checks are decided in the same way.
func TestTraces(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-scope=shop")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "cloud.region=eu-1")
	const addr = "203.0.113.77"
	spans, url := newCollector(t, "X-Scope", "shop")
	limits := writeLimits(t, limitOf("7/h"))
	p, web := serveHTTP(t, limits, append([]string{"--otlp-endpoint", url}, exact...)...)
	off := serve(t, limits, exact...)
	for _, flags := range []string{"00", "01"} {
		want := checkTen(t, off, fmt.Sprint("t", flags), addr, flags)
		if got := checkTen(t, p, fmt.Sprint("t", flags), addr, flags); got != want {
			t.Errorf("%s, and without the setting %s", got, want)
		}
	}
	eventually(t, "a span", func() bool { return len(spans.received()) > 0 })
	s := spans.received()[0]
	var got []string
	for _, name := range []string{"checks", "denied", "tenant", "verdict", "remaining"} {
		got = append(got, attribute(s, "limitgate."+name))
	}
	if text := strings.Join(got, " "); text != "10 3 t01 deny 0" {
		t.Errorf("the span has %s", text)
	}
	if fmt.Sprintf("%x %x", s.TraceId, s.ParentSpanId) != traceID+" "+callerID || s.Name != "limitgate.check" || s.EndTimeUnixNano < s.StartTimeUnixNano {
		t.Errorf("%v", s)
	}
	code, _ := askHTTP(t, http.DefaultClient, http.MethodPost, "http://"+web+"/v1/check", `{"tenant":"web","ip":"`+addr+`"}`, "traceparent: "+traceparent(callerID, "01"))
	if code != http.StatusOK {
		t.Errorf("the status over HTTP is %d", code)
	}
	eventually(t, "a span of a check over HTTP", func() bool { return len(spans.received()) == 2 })
	if s := spans.received()[1]; attribute(s, "limitgate.checks") != "1" || attribute(s, "limitgate.tenant") != "web" {
		t.Errorf("%v", s)
	}
	if metrics := p.get("/metrics"); !strings.Contains(metrics, `limitgate_trace_spans_total{outcome="exported"} 2`) {
		t.Errorf("%s", metrics)
	}
	if strings.Contains(off.get("/metrics"), "limitgate_trace_spans_total") {
		t.Error("a proxy without the setting has metrics of spans")
	}
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	for _, form := range formsOf(addr) {
		if bytes.Contains(spans.sent.Bytes(), form) {
			t.Errorf("the collector received the address as %q", form)
		}
	}
	if n := len(spans.received()); n != 2 || !strings.Contains(spans.resource, "service.instance.id") || !strings.Contains(spans.resource, "eu-1") {
		t.Errorf("%d spans of %s", n, spans.resource)
	}
}

// checkTen sends ten traced checks in a pipeline, and returns the answers but for their times.
func checkTen(t *testing.T, p *proxy, tenant, addr, flags string) string {
	t.Helper()
	cmds, err := p.client().Pipelined(context.Background(), func(c redis.Pipeliner) error {
		for range 10 {
			c.Do(context.Background(), "RL.CHECK", tenant, "-", addr, 1, "DIM", "traceparent", traceparent(callerID, flags))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var answers []string
	for _, cmd := range cmds {
		v, err := asVerdict(cmd.(*redis.Cmd))
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, fmt.Sprint(v.allowed, v.limit, v.left, v.id, v.source))
	}
	return strings.Join(answers, "\n")
}

// TestHangingCollector checks that decisions go on and the proxy ends while a collector answers
// nothing.
func TestHangingCollector(t *testing.T) {
	t.Parallel()
	asked, done := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(asked) })
		select {
		case <-r.Context().Done():
		case <-done:
		}
	}))
	defer s.Close()
	defer close(done)
	p := serve(t, writeLimits(t, limitOf("1000000/h")), append([]string{"--otlp-endpoint", s.URL}, exact...)...)
	c := p.client()
	decide := func(i int) {
		v, err := check(c, "t", "-", "-", 1, "DIM", "traceparent", traceparent(fmt.Sprintf("%016x", i+1), "01"))
		if err != nil || !v.allowed || v.source != "store" {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	decide(0)
	select {
	case <-asked:
	case <-time.After(startTimeout):
		t.Fatal("no span is exported")
	}
	const checks = 5000 // more than the tracer has room for
	for i := range checks {
		decide(1 + i)
	}
	eventually(t, "a dropped span", func() bool {
		return !strings.Contains(p.get("/metrics"), `limitgate_trace_spans_total{outcome="dropped"} 0`)
	})
	began := time.Now()
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if d := time.Since(began); d > 8*time.Second {
		t.Errorf("the proxy took %s to end", d)
	}
	if !strings.Contains(p.output(), "failed to export the last spans in time") {
		t.Errorf("%s", p.output())
	}
}

// TestTracesStayWithTheCollector: a collector that redirects gets the spans alone, and a malformed variable
// with a secret is not printed.
func TestTracesStayWithTheCollector(t *testing.T) {
	var elsewhere, redirected atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		redirected.Add(1)
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "hunter2secret,api-key=%zzhunter3")
	p := serve(t, writeLimits(t, limitOf("100/h")), "--otlp-endpoint", s.URL)
	checkTen(t, p, "acme", "-", "01")
	eventually(t, "a failed export", func() bool {
		return strings.Contains(p.get("/metrics"), `limitgate_trace_spans_total{outcome="failed"} 1`)
	})
	if redirected.Load() == 0 || elsewhere.Load() != 0 || strings.Contains(p.output(), "hunter") {
		t.Errorf("%d requests, %d elsewhere, log\n%s", redirected.Load(), elsewhere.Load(), p.output())
	}
}
