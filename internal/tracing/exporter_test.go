package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
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
	tracer = NewTo(to, Options{Version: "v1.2.3", Instance: "i1", Log: slog.New(slog.NewTextHandler(w, nil)), Now: now})
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
		if first, _, _ := strings.Cut(log.String(), "\n"); !strings.HasSuffix(first, " failed=1 advice=\""+exportAdvice+"\"") {
			t.Errorf("the first line is %s", first)
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

// TestGoodCollector checks that a collector that takes all spans gets more of them than may wait at once.
func TestGoodCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := new(fake)
		tracer, end := start(t, to, nil)
		for n := range 2 * maxQueue {
			observe(tracer, n)
			if n%(maxQueue/2) == 0 {
				time.Sleep(2 * batchEvery)
			}
		}
		end()
		if tracer.Exported() != 2*maxQueue || tracer.Dropped() != 0 {
			t.Errorf("%d spans are exported, %d dropped", tracer.Exported(), tracer.Dropped())
		}
	})
}

// TestCollector checks the path and the protocol of exports, that they follow no redirect, and that a
// span without an operation has none.
func TestCollector(t *testing.T) {
	for _, row := range []struct{ path, want string }{{"", tracesPath}, {"/", tracesPath}, {"/a/b", "/a/b"}} {
		asked := make(chan string, 10)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.Proto + " " + r.URL.Path
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}))
		server.EnableHTTP2 = true
		server.StartTLS()
		defer server.Close()
		tracer, err := New(t.Context(), Options{Endpoint: server.URL + row.path, TLS: server.Client().Transport.(*http.Transport).TLSClientConfig.Clone(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		req := traced("a", sampled)
		req.Op = ""
		tracer.Observe(req, began, decision(true, 1, 0))
		for _, r := range tracer.runs.latest {
			if text := attributesOf(r.attributes()); strings.Contains(text, "limitgate.op") {
				t.Errorf("attributes\n%s", text)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := tracer.Run(ctx); err != nil || tracer.Failed() != 1 {
			t.Errorf("%v, %d spans failed", err, tracer.Failed())
		}
		if got := <-asked; got != "HTTP/2.0 "+row.want || len(asked) > 0 {
			t.Errorf("%q: %s, and %d more requests", row.path, got, len(asked))
		}
	}
}
