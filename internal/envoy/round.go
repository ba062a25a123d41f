package envoy

import (
	"runtime/debug"
	"sync"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/limiter"
)

// round is requests that are decided at once, and the memory that this needs. It is reused, and not safe for
// concurrent use.
type round struct {
	questions []*question
	// together are the questions that one call of the limiter decides, and batch is that call.
	together []*question
	batch    limiter.Batch
	taken    []int // requests of the batch whose units go back
}

// add adds a request.
func (r *round) add(req *rls.RateLimitRequest) *question {
	n := len(r.questions)
	if n == cap(r.questions) {
		r.questions = append(r.questions, nil)
	}
	r.questions = r.questions[:n+1]
	if r.questions[n] == nil {
		r.questions[n] = new(question)
	}
	r.questions[n].req = req
	return r.questions[n]
}

// reset empties the round and keeps its memory.
func (r *round) reset() {
	for _, q := range r.questions {
		q.reset()
	}
	r.batch.Reset()
	clear(r.together)
	r.questions, r.together = r.questions[:0], r.together[:0]
}

var errInternal = status.Error(codes.Internal, "internal error")

// guard calls do with a question that has no error. A panic is the error of this question.
func (s *Service) guard(q *question, do func(*question)) {
	if q.err != nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.opts.Log.Error("request panicked", "panic", p, "stack", string(debug.Stack()))
			q.err = errInternal
		}
	}()
	do(q)
}

// decideRound decides the requests of a round, which arrived at since, or now if since is zero, and makes their
// answers. Those that take units or look are decided together, by one call of the limiter. The others need
// several calls, one after the other, and each of them has a goroutine.
func (s *Service) decideRound(r *round, since time.Time) {
	begin := s.opts.Now()
	defer func() {
		for _, q := range r.questions {
			s.inProgress.Add(-q.counted)
		}
	}()
	var alone sync.WaitGroup
	for _, q := range r.questions {
		q.behaviour, q.now = &s.opts.Behaviour, begin
		s.guard(q, s.prepare)
		switch {
		case q.err != nil:
		case q.native:
			alone.Go(func() { s.guard(q, s.decideNative) })
		case q.needsSeveralCalls():
			alone.Go(func() { s.guard(q, s.decide) })
		default:
			r.together = append(r.together, q)
		}
	}
	s.takeTogether(r, since)
	alone.Wait()
	for _, q := range r.questions {
		s.guard(q, s.answer)
		if q.err == nil {
			s.stats.count(q, s.opts.Now().Sub(begin))
		}
	}
}

// prepare binds the descriptors of a request to their limits, and refuses one that asks nothing, or too much,
// or beside too many others.
func (s *Service) prepare(q *question) {
	q.native = s.isNative(q.req.GetDomain())
	if q.err = checkRequest(q.req, q.native); q.err != nil {
		return
	}
	if !s.reserve(q, len(q.req.GetDescriptors())) || q.native {
		return
	}
	s.resolve(q)
	s.reserve(q, len(q.bound)-len(q.req.GetDescriptors()))
}

// reserve counts descriptors of a request as being decided, until the round ends. The request has an error if
// they are too many.
func (s *Service) reserve(q *question, n int) bool {
	q.counted += int64(n)
	if s.inProgress.Add(int64(n)) > maxInProgress && n > 0 {
		q.err = errBusy
	}
	return q.err == nil
}

// needsSeveralCalls reports whether one call of the limiter does not decide a request: it charges or gives
// back whatever the answer is, or its looks need a second one for their waits.
func (q *question) needsSeveralCalls() bool {
	for i := range q.bound {
		switch b := &q.bound[i]; {
		case b.role == roleCharge, b.role == roleRefund:
			return true
		case b.role == roleTake && b.hits == 0 && b.limit != nil && b.limit.Params.Algorithm != bucket.AlgorithmFixedWindow:
			return true
		}
	}
	return false
}

// takeTogether decides the requests that one call of the limiter decides. Those that are denied by a rule which
// admits nothing only look, by a call of their own.
func (s *Service) takeTogether(r *round, since time.Time) {
	asked := r.together[:0]
	for _, q := range r.together {
		q.denyClosed()
		if q.collect(roleTake); len(q.ask) == 0 || q.denies() {
			s.guard(q, s.take)
			continue
		}
		asked = append(asked, q)
		r.batch.Requests = append(r.batch.Requests, q.request())
	}
	if len(asked) == 0 {
		return
	}
	s.opts.Limiter.DecideSince(&r.batch, since)
	r.taken = r.taken[:0]
	for i, q := range asked {
		if s.note(q, &r.batch, i) {
			r.taken = append(r.taken, i)
		}
	}
	if len(r.taken) > 0 {
		s.opts.Limiter.TakeBack(&r.batch, r.taken...)
	}
}
