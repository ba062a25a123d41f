// Package tracing makes spans of OpenTelemetry of decisions whose callers trace their requests, and
// exports them by OTLP over HTTP. A decision never waits for the collector: spans that find no room
// are dropped and counted.
package tracing

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/limitgate/limitgate/limit"
)

// Options configure a Tracer.
type Options struct {
	// Endpoint is the URL that receives the spans, as the settings have checked it. The exporter
	// reads headers and compression from the variables OTEL_EXPORTER_OTLP_*.
	Endpoint string
	// TLS is the configuration of connections; nil is that of the system.
	TLS *tls.Config
	// Version is that of the program, and Instance a name of this process that no other one has.
	Version, Instance string
	Log               *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Tracer makes a span of each run of requests that are decided together and have the same caller's
// span. It is safe for concurrent use. Spans are exported while Run runs.
type Tracer struct {
	opts     Options
	runs     runs
	exporter *exporter
	dropped  atomic.Int64
}

// exportTimeout bounds an attempt to export, as OTLP recommends.
const exportTimeout = 10 * time.Second

// tracesPath is the path of a collector by the protocol, for an endpoint that has none.
const tracesPath = "/v1/traces"

// New returns a tracer that exports to the endpoint of o. It does not connect yet.
func New(ctx context.Context, o Options) (*Tracer, error) {
	endpoint, err := url.Parse(o.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("parse endpoint of spans: %w", err)
	}
	if endpoint.Path == "" || endpoint.Path == "/" {
		endpoint.Path = tracesPath
	}
	otel.SetLogger(logr.Discard()) // it prints malformed variables with their values, which may be secret
	client := &http.Client{
		Timeout:   exportTimeout,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: o.TLS, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute},
		// Headers with credentials must not go elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	to, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint.String()), otlptracehttp.WithHTTPClient(client))
	if err != nil {
		return nil, fmt.Errorf("make exporter of spans: %w", err)
	}
	return NewTo(to, o), nil
}

// NewTo returns a tracer that exports to another exporter, such as that of a test.
func NewTo(to sdktrace.SpanExporter, o Options) *Tracer {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Tracer{opts: o, runs: newRuns(), exporter: newExporter(to, o.Log, o.Now)}
}

// Observe adds a decision to the span of its run, if its caller traces it, see limiter.Observer. Now
// is when the run began, in microseconds.
func (t *Tracer) Observe(req *limit.Request, now int64, d *limit.Decision) {
	text, found := req.Dimension(limit.TraceDim)
	if !found {
		return
	}
	caller := parse(text)
	if !caller.IsSampled() {
		return
	}
	if !t.runs.add(caller, req, now, d, t.opts.Now()) {
		t.dropped.Add(1)
	}
}

// parse returns the span of a trace context, which is not valid if the text is not.
func parse(traceparent string) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), carrier(traceparent))
	return trace.SpanContextFromContext(ctx)
}

// carrier has the one field of a trace context.
type carrier string

// Get implements propagation.TextMapCarrier.
func (c carrier) Get(key string) string {
	if key == limit.TraceDim {
		return string(c)
	}
	return ""
}

// Set implements propagation.TextMapCarrier. Nothing is injected.
func (carrier) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (carrier) Keys() []string { return []string{limit.TraceDim} }

// Exported returns the number of spans that the collector has taken.
func (t *Tracer) Exported() int64 { return t.exporter.exported.Load() }

// Failed returns the number of spans that it has not taken, or only in part.
func (t *Tracer) Failed() int64 { return t.exporter.failed.Load() }

// Dropped returns the number of spans that found no room.
func (t *Tracer) Dropped() int64 { return t.dropped.Load() }
