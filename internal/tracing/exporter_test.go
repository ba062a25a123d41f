package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// fake is an exporter that keeps spans, or does something else with them.
type fake struct {
	instead func(ctx context.Context, spans []sdktrace.ReadOnlySpan) error // nil is nothing else

	mu    sync.Mutex // guards spans
	spans tracetest.SpanStubs
}

// ExportSpans implements sdktrace.SpanExporter.
func (f *fake) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if f.instead != nil {
		return f.instead(ctx, spans)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spans = append(f.spans, tracetest.SpanStubsFromReadOnlySpans(spans)...)
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (*fake) Shutdown(context.Context) error { return nil }

func (f *fake) all() tracetest.SpanStubs {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.spans
}

// hang is a collector that answers nothing.
func hang(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
	<-ctx.Done()
	return ctx.Err()
}

// startLogging runs a tracer that exports to another exporter, and logs to w. End ends it.
func startLogging(t *testing.T, to *fake, now func() time.Time, w *bytes.Buffer) (tracer *Tracer, end func()) {
	t.Helper()
	tracer = newTracer(to, Options{Version: "v1.2.3", Instance: "i1", Log: slog.New(slog.NewTextHandler(w, nil)), Now: now})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tracer.Run(ctx) }()
	return tracer, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func start(t *testing.T, to *fake, now func() time.Time) (tracer *Tracer, end func()) {
	return startLogging(t, to, now, new(bytes.Buffer))
}

// observe observes a run of two requests, one of many.
func observe(tracer *Tracer, n int) {
	for range 2 {
		tracer.Observe(traced("a", fmt.Sprintf("00-%s-%016x-01", traceID, n+1)), began, decision(true, 1, 0))
	}
}

// TestExportsInTime checks when a span leaves, without the end of the program.
func TestExportsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := new(fake)
		tracer, end := start(t, to, nil)
		defer end()
		observe(tracer, 1)
		time.Sleep(2*flushEvery + batchEvery + time.Millisecond)
		synctest.Wait()
		if len(to.all()) != 1 || tracer.Exported() != 1 {
			t.Errorf("%d spans, %d counted", len(to.all()), tracer.Exported())
		}
	})
}

// TestManyRuns checks that runs beyond the bound are dropped and counted, each once.
func TestManyRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := new(fake)
		tracer, end := start(t, to, nil)
		for n := range maxRuns + 10 {
			observe(tracer, n)
		}
		end()
		if len(to.all()) != maxRuns || tracer.Exported() != maxRuns || tracer.Dropped() != 10 || tracer.Failed() != 0 {
			t.Errorf("%d spans, %d exported, %d dropped, %d failed", len(to.all()), tracer.Exported(), tracer.Dropped(), tracer.Failed())
		}
	})
}

// TestHangingCollector checks that spans beyond the queue are dropped and counted while a collector
// hangs, that Observe does not wait for it, and that Run ends soon without it.
func TestHangingCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		tracer, end := startLogging(t, &fake{instead: hang}, nil, &log)
		began, sent := time.Now(), 0
		for range 4 {
			for range maxRuns {
				observe(tracer, sent)
				sent++
			}
			if time.Since(began)%(2*flushEvery) != 0 {
				t.Errorf("Observe took until %s", time.Since(began))
			}
			time.Sleep(2 * flushEvery)
			synctest.Wait()
		}
		if n := tracer.exporter.waiting.Load(); n != maxQueue || tracer.Dropped() != int64(sent-maxQueue) {
			t.Errorf("%d spans wait, %d of %d are dropped", n, tracer.Dropped(), sent)
		}
		ending := time.Now()
		end()
		if d := time.Since(ending); d > flushTimeout {
			t.Errorf("Run took %s to end", d)
		}
		if total := tracer.Failed() + tracer.Dropped(); total != int64(sent) || tracer.Exported() != 0 {
			t.Errorf("%d of %d spans are counted", total, sent)
		}
		if !strings.Contains(log.String(), "failed to export the last spans in time") {
			t.Errorf("log: %s", log.String())
		}
	})
}

// TestFailingCollector checks that failures are counted, logged once a minute and cut short, and that
// the spans after them arrive.
func TestFailingCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		to := &fake{instead: func(context.Context, []sdktrace.ReadOnlySpan) error {
			return errors.New("no such tenant " + strings.Repeat("y", 10_000))
		}}
		tracer, end := startLogging(t, to, nil, &log)
		for n := range 100 {
			observe(tracer, n)
			time.Sleep(2 * time.Second)
		}
		synctest.Wait()
		if lines := strings.Count(log.String(), "failed to export spans"); lines < 3 || lines > 4 || tracer.Failed() < 98 {
			t.Errorf("%d lines in 200 seconds, %d failed", lines, tracer.Failed())
		}
		if n := log.Len(); n > 4*(maxErrorText+200) {
			t.Errorf("%d bytes of log", n)
		}
		failed := tracer.Failed()
		to.instead = nil
		observe(tracer, 100)
		end()
		if tracer.Failed() != failed || tracer.Exported() < 1 || len(to.all()) != int(tracer.Exported()) {
			t.Errorf("%d failed, %d exported, %d arrived", tracer.Failed(), tracer.Exported(), len(to.all()))
		}
	})
}
