package tracing

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	sampled = "00-" + traceID + "-00f067aa0ba902b7-01"
	// began is when a run began, in microseconds.
	began = 1_700_000_000_000_123
)

var payments = &limit.Limit{ID: "payments", Plan: "free", Params: bucket.Params{Capacity: 10}}

// traced returns a request with a trace context.
func traced(tenant, traceparent string) *limit.Request {
	return &limit.Request{
		Tenant: tenant, Op: "POST /pay", Addr: netip.MustParseAddr("203.0.113.7"), Cost: 1,
		Dims: []limit.Dim{{Name: "user", Value: "u1"}, {Name: limit.TraceDim, Value: traceparent}},
	}
}

// decision returns what payments decides.
func decision(allowed bool, remaining, retryAfter int64) *limit.Decision {
	return &limit.Decision{Allowed: allowed, Binding: payments, Limit: 10, Remaining: remaining, RetryAfter: retryAfter, Source: limit.SourceStore}
}

// attributesOf returns the attributes of a span as lines, in the order of their names.
func attributesOf(all []attribute.KeyValue) string {
	var lines []string
	for _, a := range all {
		lines = append(lines, fmt.Sprintf("%s=%v", a.Key, a.Value.AsInterface()))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestSpan checks all that a span of ten checks has, three of them denied.
func TestSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := new(fake)
		now := time.UnixMicro(began)
		tracer, end := start(t, to, func() time.Time { now = now.Add(time.Millisecond); return now })
		for i := range int64(10) {
			d := decision(true, 9-i, 0)
			if i >= 4 && i < 7 {
				d = decision(false, 0, 1000+i)
			}
			tracer.Observe(traced(fmt.Sprint("tenant ", i), sampled), began, d)
		}
		end()
		spans := to.all()
		if len(spans) != 1 {
			t.Fatalf("%d spans", len(spans))
		}
		s := spans[0]
		want := "limitgate.checks=10\nlimitgate.denied=3\nlimitgate.limit=payments\nlimitgate.op=POST /pay\nlimitgate.remaining=0\n" +
			"limitgate.retry_after_ms=1004\nlimitgate.source=store\nlimitgate.tenant=tenant 4\nlimitgate.verdict=deny"
		if got := attributesOf(s.Attributes); got != want {
			t.Errorf("attributes\n%s\nwant\n%s", got, want)
		}
		if s.InstrumentationScope.Name != scope || s.InstrumentationScope.Version != "v1.2.3" {
			t.Errorf("made by %+v", s.InstrumentationScope)
		}
		if s.Name != "limitgate.check" || s.SpanKind != trace.SpanKindServer || s.Status.Code != codes.Unset || s.Status.Description != "" {
			t.Errorf("%s of kind %s with status %v", s.Name, s.SpanKind, s.Status)
		}
		if s.SpanContext.TraceID().String() != traceID || s.Parent.SpanID().String() != "00f067aa0ba902b7" || !s.Parent.IsRemote() {
			t.Errorf("trace %s, parent %+v", s.SpanContext.TraceID(), s.Parent)
		}
		if s.StartTime.UnixMicro() != began || s.EndTime.Sub(s.StartTime) != 10*time.Millisecond {
			t.Errorf("from %s to %s", s.StartTime, s.EndTime)
		}
		if got := attributesOf(s.Resource.Attributes()); got != "service.instance.id=i1\nservice.name=limitgate\nservice.version=v1.2.3" {
			t.Errorf("resource\n%s", got)
		}
		if text := fmt.Sprintf("%+v", s); strings.Contains(text, "203.0.113.7") || len(s.Events)+len(s.Links) > 0 {
			t.Errorf("the address of a client, or more than attributes: %s", text)
		}
	})
}

// TestAnswer checks which request of a run its span describes: the first denial, or else the last.
func TestAnswer(t *testing.T) {
	none := &limit.Decision{Allowed: true, Limit: -1, Remaining: -1, Source: limit.SourcePolicy, Item: -1}
	never := &limit.Decision{Binding: payments, Limit: 10, RetryAfter: bucket.Never, Source: limit.SourceCache}
	for name, row := range map[string]struct {
		decisions []*limit.Decision
		want      string
	}{
		"all admitted": {[]*limit.Decision{none, decision(true, 5, 0), decision(true, 4, 0)}, "admit 2 store payments 4 0"},
		"no limit":     {[]*limit.Decision{decision(true, 5, 0), none}, "admit 1 policy <nil> <nil> 0"},
		"first denial": {[]*limit.Decision{decision(true, 0, 0), never, decision(false, 0, 7)}, "deny 1 cache payments 0 -1"},
	} {
		t.Run(name, func(t *testing.T) {
			tracer := NewTo(nil, Options{})
			for i, d := range row.decisions {
				tracer.Observe(traced(fmt.Sprint(i), sampled), began, d)
			}
			tracer.runs.take()
			for _, r := range tracer.runs.take() {
				found := map[attribute.Key]any{}
				for _, a := range r.attributes() {
					found[a.Key] = a.Value.AsInterface()
				}
				got := fmt.Sprint(found["limitgate.verdict"], " ", found["limitgate.tenant"], " ", found["limitgate.source"], " ", found["limitgate.limit"], " ", found["limitgate.remaining"], " ", found["limitgate.retry_after_ms"])
				if got != row.want || r.checks != int64(len(row.decisions)) {
					t.Errorf("%d checks, %s, want %s", r.checks, got, row.want)
				}
			}
		})
	}
}

// TestRunsAreApart checks that requests of another run, or of another caller's span, have spans of
// their own.
func TestRunsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := new(fake)
		tracer, end := start(t, to, nil)
		for range 3 {
			tracer.Observe(traced("a", sampled), began, decision(true, 1, 0))
			tracer.Observe(traced("a", sampled), began+1, decision(true, 1, 0))
			tracer.Observe(traced("a", "00-"+traceID+"-00f067aa0ba902b8-01"), began, decision(true, 1, 0))
			tracer.Observe(traced("a", "00-5"+traceID[1:]+"-00f067aa0ba902b7-01"), began, decision(true, 1, 0))
		}
		end()
		for _, s := range to.all() {
			if !strings.Contains(attributesOf(s.Attributes), "limitgate.checks=3\n") {
				t.Errorf("%s", attributesOf(s.Attributes))
			}
		}
		if n := len(to.all()); n != 4 || tracer.Exported() != 4 {
			t.Errorf("%d spans, %d counted, want 4", n, tracer.Exported())
		}
	})
}

// TestRunOverATick checks that a run has one span although complete runs are taken amid it.
func TestRunOverATick(t *testing.T) {
	tracer := NewTo(nil, Options{})
	tracer.Observe(traced("a", sampled), began, decision(true, 1, 0))
	if n := len(tracer.runs.take()); n != 0 {
		t.Errorf("%d runs, want none that may go on", n)
	}
	tracer.Observe(traced("a", sampled), began, decision(true, 1, 0))
	taken := tracer.runs.take()
	if len(taken) != 1 || len(tracer.runs.take()) != 0 {
		t.Errorf("%d runs", len(taken))
	}
	for _, r := range taken {
		if r.checks != 2 {
			t.Errorf("%d checks", r.checks)
		}
	}
}

// TestUntraced checks that requests whose caller does not trace them leave nothing.
func TestUntraced(t *testing.T) {
	tracer := NewTo(nil, Options{})
	for _, text := range []string{
		"00-" + traceID + "-00f067aa0ba902b7-00", // not sampled
		"00-" + traceID + "-00f067aa0ba902b7-02",
		"00-" + traceID + "-00f067aa0ba902b7",
		"00-" + traceID + "-00f067aa0ba902b7-01-x",
		"00-" + traceID + "-0000000000000000-01",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
		"00-" + strings.ToUpper(traceID) + "-00f067aa0ba902b7-01",
		"ff-" + traceID + "-00f067aa0ba902b7-01",
		" " + sampled, "01", "-", "-----", "x", strings.Repeat("0", limit.MaxNameBytes), strings.Repeat("-", limit.MaxNameBytes),
	} {
		tracer.Observe(traced("a", text), began, decision(true, 1, 0))
		if n := len(tracer.runs.latest); n != 0 {
			t.Fatalf("%q is traced", text)
		}
	}
	for _, dims := range [][]limit.Dim{nil, {{Name: "Traceparent", Value: sampled}}, {{Name: "user", Value: sampled}}} {
		tracer.Observe(&limit.Request{Tenant: "a", Dims: dims}, began, decision(true, 1, 0))
	}
	if n := len(tracer.runs.latest); n != 0 {
		t.Error("a request without a trace context is traced")
	}
	// A later version of the format may have more behind the flags.
	tracer.Observe(traced("a", "01-"+traceID+"-00f067aa0ba902b7-01-more"), began, decision(true, 1, 0))
	if n := len(tracer.runs.latest); n != 1 {
		t.Error("a later version of the format is not traced")
	}
}

// TestNoAlias checks that no run keeps the memory of a command, which is used again.
func TestNoAlias(t *testing.T) {
	text := []byte("acme POST /pay " + sampled)
	alias := func(from, to int) string { return unsafe.String(&text[from], to-from) }
	req := &limit.Request{Tenant: alias(0, 4), Op: alias(5, 14), Dims: []limit.Dim{{Name: limit.TraceDim, Value: alias(15, len(text))}}}
	tracer := NewTo(nil, Options{})
	tracer.Observe(req, began, decision(true, 1, 0))
	copy(text, bytes.Repeat([]byte("x"), len(text)))
	tracer.runs.take()
	for key, r := range tracer.runs.take() {
		if r.answer.tenant != "acme" || r.answer.op != "POST /pay" || key.traceID.String() != traceID {
			t.Errorf("%+v of trace %s", r.answer, key.traceID)
		}
	}
}

// TestClockSetBack checks that a span never ends before it begins.
func TestClockSetBack(t *testing.T) {
	tracer := NewTo(nil, Options{Now: func() time.Time { return time.UnixMicro(began - 1) }})
	tracer.Observe(traced("a", sampled), began, decision(true, 1, 0))
	for _, r := range tracer.runs.latest {
		if !r.ended.Equal(r.began) {
			t.Errorf("from %s to %s", r.began, r.ended)
		}
	}
}

// TestConcurrent checks that no check of any run is lost while many connections decide.
func TestConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const connections, pipelines, checks = 8, 50, 10
		to := new(fake)
		tracer, end := start(t, to, nil)
		var wg sync.WaitGroup
		for c := range connections {
			wg.Go(func() {
				for p := range int64(pipelines) {
					parent := fmt.Sprintf("00-%s-%016x-01", traceID, c%4+1) // two connections share one
					for range checks {
						tracer.Observe(traced("a", parent), began+p, decision(p%2 == 0, 1, 0))
					}
					time.Sleep(flushEvery / 10)
				}
			})
		}
		wg.Wait()
		end()
		sum := map[attribute.Key]int64{}
		for _, s := range to.all() {
			for _, a := range s.Attributes {
				if a.Value.Type() == attribute.INT64 {
					sum[a.Key] += a.Value.AsInt64()
				}
			}
		}
		if sum["limitgate.checks"] != connections*pipelines*checks || sum["limitgate.denied"] != connections*pipelines/2*checks || tracer.Dropped() > 0 {
			t.Errorf("%v, %d dropped", sum, tracer.Dropped())
		}
	})
}

// TestUntracedCost checks that a request without a trace context allocates nothing.
func TestUntracedCost(t *testing.T) {
	tracer := NewTo(nil, Options{})
	req, d := &limit.Request{Tenant: "a", Dims: []limit.Dim{{Name: "user", Value: "u1"}}}, decision(true, 1, 0)
	if n := testing.AllocsPerRun(100, func() { tracer.Observe(req, began, d) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	requests := map[string]*limit.Request{
		"no dimensions": {Tenant: "a"},
		"untraced":      {Tenant: "a", Dims: []limit.Dim{{Name: "user", Value: "u1"}, {Name: "region", Value: "eu"}}},
		"unsampled":     traced("a", sampled[:len(sampled)-1]+"0"),
		"traced":        traced("a", sampled),
	}
	for name, req := range requests {
		b.Run(name, func(b *testing.B) {
			tracer, d := NewTo(tracetest.NewNoopExporter(), Options{}), decision(true, 1, 0)
			b.ReportAllocs()
			for b.Loop() {
				tracer.Observe(req, began, d)
			}
		})
	}
}
