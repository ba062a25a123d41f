package tracing

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/limitgate/limitgate/internal/logthrottle"
	"github.com/limitgate/limitgate/internal/run"
)

const (
	// flushEvery is how often complete runs become spans: a span leaves a tenth of a second after
	// its run, and two at the most.
	flushEvery = 100 * time.Millisecond
	// maxQueue bounds the spans that wait for the collector, those that are being sent included:
	// all runs that one flush may have. It is the size of the SDK's queue, which so never drops a
	// span uncounted.
	maxQueue = maxRuns
	// maxBatch is the largest number of spans of one export, and batchEvery the longest time that
	// a span waits for others.
	maxBatch   = 512
	batchEvery = time.Second
	// flushTimeout bounds the last exports, at the end.
	flushTimeout = 2 * time.Second
	// logEvery is the least time between two lines about exports that fail.
	logEvery = time.Minute
	// maxErrorText bounds the text of an error in the log: it may have the body of a collector's
	// answer.
	maxErrorText = 256
)

// service is the name of the program in traces, and scope that of the code that makes the spans.
const (
	service  = "limitgate"
	scope    = "github.com/limitgate/limitgate/internal/tracing"
	spanName = "limitgate.check"
)

// Run exports spans until ctx ends, and then those that wait, for flushTimeout at most. It returns no
// error: a collector that fails is logged.
func (t *Tracer) Run(ctx context.Context) error {
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(t.exporter, sdktrace.WithMaxQueueSize(maxQueue), sdktrace.WithMaxExportBatchSize(maxBatch), sdktrace.WithBatchTimeout(batchEvery)),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // the callers have decided
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", service),
			attribute.String("service.version", t.opts.Version),
			attribute.String("service.instance.id", t.opts.Instance),
		)),
	)
	spans := provider.Tracer(scope, trace.WithInstrumentationVersion(t.opts.Version))
	for run.Sleep(ctx, flushEvery) {
		t.flush(spans)
	}
	t.flush(spans)
	t.flush(spans)
	flushing, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := provider.Shutdown(flushing); err != nil {
		t.opts.Log.Warn("failed to export the last spans in time", "error", err)
	}
	t.exporter.abort()
	<-t.exporter.closed
	return nil
}

// flush makes spans of the runs that are complete.
func (t *Tracer) flush(spans trace.Tracer) {
	for _, r := range t.runs.take() {
		if !t.exporter.admit() {
			t.dropped.Add(1)
			continue
		}
		_, span := spans.Start(trace.ContextWithRemoteSpanContext(context.Background(), r.caller), spanName,
			trace.WithTimestamp(r.began), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(r.attributes()...))
		span.End(trace.WithTimestamp(r.ended))
	}
}

// exporter counts what another exporter does with spans, and logs its errors.
type exporter struct {
	to  sdktrace.SpanExporter
	log *slog.Logger

	waiting          atomic.Int64 // spans that are admitted and neither exported nor failed
	exported, failed atomic.Int64
	failures         logthrottle.Throttle

	// abort ends exports under way, and makes all others fail. Aborted ends when it is called.
	aborted context.Context
	abort   context.CancelFunc
	closed  chan struct{} // by Shutdown
}

func newExporter(to sdktrace.SpanExporter, log *slog.Logger, now func() time.Time) *exporter {
	e := &exporter{to: to, log: log, closed: make(chan struct{}), failures: logthrottle.Throttle{Period: logEvery, Now: now}}
	e.aborted, e.abort = context.WithCancel(context.Background())
	return e
}

// admit reports whether there is room for another span, which waits then. It is called by one
// goroutine.
func (e *exporter) admit() bool {
	if e.waiting.Load() >= maxQueue {
		return false
	}
	e.waiting.Add(1)
	return true
}

const exportAdvice = "check that a collector takes OTLP over HTTP at the endpoint of spans, usually at port 4318"

// ExportSpans implements sdktrace.SpanExporter. It returns no error: the SDK would write it to the
// standard error.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.aborted, cancel)()
	err := e.to.ExportSpans(ctx, spans)
	n := int64(len(spans))
	e.waiting.Add(-n)
	if err == nil {
		e.exported.Add(n)
		return nil
	}
	e.failed.Add(n)
	if e.failures.Allow() {
		text := err.Error()
		e.log.Warn("failed to export spans", "error", text[:min(len(text), maxErrorText)], "failed", e.failed.Load(), "advice", exportAdvice)
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter. The SDK calls it when no export is under way any more.
func (e *exporter) Shutdown(ctx context.Context) error {
	defer close(e.closed)
	return e.to.Shutdown(ctx)
}
