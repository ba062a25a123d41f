package tracing

import (
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/limitgate/limitgate/limit"
)

// maxRuns bounds the runs that wait to become spans: with flushEvery some 10,000 a second, and with
// the longest names 3 MB.
const maxRuns = 2048

// runKey identifies a run: the caller's span, and when the decisions of the run began, in
// microseconds.
type runKey struct {
	traceID trace.TraceID
	spanID  trace.SpanID
	began   int64
}

// tracedRun is a run of requests with the same caller's span, which becomes one span.
type tracedRun struct {
	caller         trace.SpanContext
	began, ended   time.Time
	checks, denied int64
	answer         answer
}

// answer describes the first denial of a run, or else its last decision. It has no address.
type answer struct {
	limit, verdict, source string
	remaining, retryAfter  int64
	tenant, op             string
}

// runs groups requests. It is safe for concurrent use.
type runs struct {
	mu sync.Mutex // guards the fields below
	// A run that began before the last call of take is in earlier, and the others in latest: the
	// requests of a run are observed one behind the other, so a run in earlier is complete when
	// take is called again.
	latest, earlier map[runKey]*tracedRun
	// refused is the last run that found no room, so that its further requests are not counted.
	refused runKey
}

func newRuns() runs { return runs{latest: map[runKey]*tracedRun{}, earlier: map[runKey]*tracedRun{}} }

// add adds a request to its run. It returns false if that is a run for which there is no room, once
// for each.
func (r *runs) add(caller trace.SpanContext, req *limit.Request, began int64, d *limit.Decision, ended time.Time) (ok bool) {
	key := runKey{caller.TraceID(), caller.SpanID(), began}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.latest[key]
	if known == nil {
		known = r.earlier[key]
	}
	if known == nil {
		if len(r.latest)+len(r.earlier) >= maxRuns {
			ok = key == r.refused
			r.refused = key
			return ok
		}
		known = &tracedRun{caller: caller, began: time.UnixMicro(began)}
		r.latest[key] = known
	}
	known.add(req, d, ended)
	return true
}

// take removes the runs that are complete, and returns them. Called twice, it returns all.
func (r *runs) take() map[runKey]*tracedRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	complete := r.earlier
	r.earlier, r.latest = r.latest, map[runKey]*tracedRun{}
	return complete
}

// add adds a request to the run.
func (r *tracedRun) add(req *limit.Request, d *limit.Decision, ended time.Time) {
	r.checks++
	r.ended = ended
	if r.ended.Before(r.began) { // the clock was set back
		r.ended = r.began
	}
	if r.denied == 0 {
		r.answer.describe(req, d)
	}
	if !d.Allowed {
		r.denied++
	}
}

// describe makes a the answer to a request.
func (a *answer) describe(req *limit.Request, d *limit.Decision) {
	a.limit, a.source, a.remaining, a.retryAfter = d.LimitID(), d.Source.String(), d.Remaining, d.RetryAfter
	a.verdict = "admit"
	if !d.Allowed {
		a.verdict = "deny"
	}
	if a.tenant != req.Tenant { // it aliases the command
		a.tenant = strings.Clone(req.Tenant)
	}
	if a.op != req.Op {
		a.op = strings.Clone(req.Op)
	}
}

// attributes returns the attributes of the run's span. Those of the limit are missing if no limit
// applied.
func (r *tracedRun) attributes() []attribute.KeyValue {
	a := &r.answer
	all := []attribute.KeyValue{
		attribute.Int64("limitgate.checks", r.checks), attribute.Int64("limitgate.denied", r.denied),
		attribute.String("limitgate.verdict", a.verdict), attribute.String("limitgate.source", a.source),
		attribute.Int64("limitgate.retry_after_ms", a.retryAfter), attribute.String("limitgate.tenant", a.tenant),
	}
	if a.op != "" {
		all = append(all, attribute.String("limitgate.op", a.op))
	}
	if a.limit != "" {
		all = append(all, attribute.String("limitgate.limit", a.limit), attribute.Int64("limitgate.remaining", a.remaining))
	}
	return all
}
