package commands_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/internal/tracing"
	"github.com/limitgate/limitgate/limit"
)

// tracedLines are checks, and commands with an influence on them.
var tracedLines = []string{
	"RL.CHECK free - - 1", "RL.CHECK free search 192.0.2.1 2", "RL.CHECK acme \"POST /pay\" - 2", "RL.CHECK acme - - 1 ID a", "RL.CHECK acme - - 1 HEADERS",
	"RL.CHECK acme search - 1 DIM user u1", "RL.CHECK banned - -", "RL.PEEK free - -", "RL.RESERVE acme - - 3 ID r", "RL.CANCEL ID r TENANT acme",
	"RL.ACQUIRE acme - - ID s", "RL.RELEASE ID s TENANT acme", "RL.REFUND free - - 1",
}

const (
	traceID, callerID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	// traceOf is the trace of a caller, as a dimension.
	traceOf = " DIM traceparent 00-" + traceID + "-" + callerID + "-01"
)

// withTrace returns a line with the trace of its caller, if the command takes a dimension.
func withTrace(line string) string {
	if strings.HasPrefix(line, "RL.CANCEL") || strings.HasPrefix(line, "RL.RELEASE") {
		return line
	}
	return line + traceOf
}

// unobserved ignores what is no decision.
type unobserved struct{}

func (unobserved) Settled(limit.Change, limit.Outcome)     {}
func (unobserved) Took(limit.Source, time.Duration, int64) {}

// tracer passes decisions to a tracer.
type tracer struct {
	unobserved
	*tracing.Tracer
}

func (o tracer) Observe(_ *limit.Set, req *limit.Request, now int64, d *limit.Decision, _ []limit.Item) {
	o.Tracer.Observe(req, now, d)
}

// pipeline is what the span of a pipeline has: how many of its requests were decided and denied, and the
// answer to the first denial, or else to the last request.
type pipeline struct {
	checks, denied int
	answer         string
}

// pipelines records decisions by the time at which those of their pipeline began, in microseconds.
type pipelines struct {
	unobserved
	byTime map[int64]pipeline
}

func (o *pipelines) Observe(_ *limit.Set, req *limit.Request, now int64, d *limit.Decision, _ []limit.Item) {
	one := o.byTime[now]
	if one.checks++; one.denied == 0 {
		one.answer = fmt.Sprintf("%s %q: allowed=%t by %q, source %s, retry after %d", req.Tenant, req.Op, d.Allowed, d.LimitID(), d.Source, d.RetryAfter)
		if d.LimitID() != "" {
			one.answer += fmt.Sprint(", left ", d.Remaining)
		}
	}
	if !d.Allowed {
		one.denied++
	}
	o.byTime[now] = one
}

// pipelineOf returns what a span has.
func pipelineOf(s *tracetest.SpanStub) pipeline {
	has := map[attribute.Key]attribute.Value{}
	for _, a := range s.Attributes {
		has[a.Key] = a.Value
	}
	text := func(name attribute.Key) string { return has["limitgate."+name].AsString() }
	number := func(name attribute.Key) int64 { return has["limitgate."+name].AsInt64() }
	p := pipeline{checks: int(number("checks")), denied: int(number("denied"))}
	p.answer = fmt.Sprintf("%s %q: allowed=%t by %q, source %s, retry after %d",
		text("tenant"), text("op"), text("verdict") == "admit", text("limit"), text("source"), number("retry_after_ms"))
	if _, found := has["limitgate.remaining"]; found {
		p.answer += fmt.Sprint(", left ", number("remaining"))
	}
	return p
}

// tracedSessions are two sessions of handlers that decide alike. The decisions of one are recorded, and
// those of the other traced.
type tracedSessions struct {
	plain, traced *commands.Session
	decided       pipelines
	spans         *tracetest.InMemoryExporter
	now           time.Time
	flush         func()
}

// traceSessions returns two sessions in a bubble of package synctest.
func traceSessions(t *testing.T) *tracedSessions {
	t.Helper()
	s := &tracedSessions{decided: pipelines{byTime: map[int64]pipeline{}}, spans: tracetest.NewInMemoryExporter(), now: clock}
	now := func() time.Time { return s.now }
	to := tracing.NewTo(s.spans, tracing.Options{Log: slog.New(slog.DiscardHandler), Now: now})
	s.plain = newSession(t, newHandler(t, handlerOptions{now: now, observer: &s.decided}))
	s.traced = newSession(t, newHandler(t, handlerOptions{now: now, observer: tracer{Tracer: to}}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- to.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil || to.Dropped() > 0 {
			t.Errorf("%v, %d spans are dropped", err, to.Dropped())
		}
	})
	s.flush = func() { time.Sleep(5 * time.Second) }
	return s
}

// serve serves a pipeline by both sessions, and returns how many commands the plain one answered fast.
func (s *tracedSessions) serve(t *testing.T, lines ...string) (fast int) {
	t.Helper()
	var same []string
	for _, line := range lines {
		same = append(same, withTrace(line))
	}
	want, rest := serveFast(s.plain, words(strings.Join(lines, " ; ")))
	others, _ := serveOthers(t, s.plain, rest)
	want = append(want, others...)
	if got, _ := serveOthers(t, s.traced, words(strings.Join(same, " ; "))); !bytes.Equal(got, want) {
		t.Fatalf("%s:\n%q\nwant\n%q", strings.Join(lines, " ; "), got, want)
	}
	return len(lines) - len(rest)
}

// check compares the spans with the decisions of each pipeline.
func (s *tracedSessions) check(t *testing.T) {
	t.Helper()
	spans := s.spans.GetSpans()
	for i := range spans {
		span := &spans[i]
		if got, want := pipelineOf(span), s.decided.byTime[span.StartTime.UnixMicro()]; got != want {
			t.Fatalf("the span of %s has %+v, want %+v", span.StartTime, got, want)
		}
		if span.Name != "limitgate.check" || span.SpanContext.TraceID().String() != traceID || span.Parent.SpanID().String() != callerID || !span.EndTime.Equal(span.StartTime) {
			t.Fatalf("the span is %+v", span)
		}
	}
	if len(spans) != len(s.decided.byTime) {
		t.Errorf("%d spans of %d pipelines", len(spans), len(s.decided.byTime))
	}
}

// TestTraced checks that a session answers each pipeline byte by byte as one whose decisions are
// traced, whichever way both take, and that each pipeline has one span with its decisions.
func TestTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(storetest.Seed(t), 8))
		s, answered := traceSessions(t), 0
		for n := range 10_000 {
			var lines []string
			for range 1 + random.IntN(8) {
				line := tracedLines[random.IntN(len(tracedLines))]
				if random.IntN(2) == 0 {
					line = tracedLines[0]
				}
				lines = append(lines, line)
			}
			answered += s.serve(t, lines...)
			s.now = s.now.Add(time.Duration(1+random.IntN(3000)) * time.Millisecond) // a pipeline has a time of its own
			if n%1000 == 0 {
				s.flush() // no more wait than the tracer has room for
			}
		}
		s.flush()
		if answered < 1000 {
			t.Errorf("%d commands answered fast", answered)
		}
		s.check(t)
	})
}

// TestTracedPipeline checks the spans of some pipelines, word by word.
func TestTracedPipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := traceSessions(t)
		for _, row := range []struct {
			lines string
			want  pipeline
		}{
			{"RL.CHECK free - - 1 ; RL.CHECK acme search - 7", pipeline{2, 0, `acme "search": allowed=true by "tenant", source store, retry after 0, left 93`}},
			{`RL.CHECK free - - 1 ; RL.CHECK banned search - ; RL.CHECK free - - 1 ; RL.CHECK free - - 21`, pipeline{4, 2, `banned "search": allowed=false by "tenant", source policy, retry after -1, left 0`}},
			{"RL.RESERVE acme - - 3 ID r ; RL.CANCEL ID r TENANT acme", pipeline{1, 0, `acme "": allowed=true by "tenant", source store, retry after 0, left 97`}},
		} {
			s.spans.Reset()
			s.serve(t, strings.Split(row.lines, " ; ")...)
			s.flush()
			spans := s.spans.GetSpans()
			if len(spans) != 1 {
				t.Fatalf("%s has %d spans", row.lines, len(spans))
			}
			if got := pipelineOf(&spans[0]); got != row.want {
				t.Errorf("%s has %+v, want %+v", row.lines, got, row.want)
			}
			s.now = s.now.Add(time.Minute)
		}
	})
}
