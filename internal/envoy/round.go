package envoy

import (
	"cmp"
	"runtime/debug"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/limitgate/limitgate/internal/grpcserver"
	"github.com/limitgate/limitgate/limiter"
)

// round is requests that one call of the limiter decides, and the memory that this needs. It is reused, and
// not safe for concurrent use.
type round struct {
	questions []*question
	calls     []*grpcserver.Call // of the questions
	batch     limiter.Batch
	// broken reports that a call of the limiter has panicked, and may still use the batch.
	broken bool
}

// add adds a call, and returns its question.
func (r *round) add(call *grpcserver.Call) *question {
	n := len(r.questions)
	if n == cap(r.questions) {
		r.questions = append(r.questions, nil)
	}
	if r.questions = r.questions[:n+1]; r.questions[n] == nil {
		r.questions[n] = new(question)
	}
	r.calls = append(r.calls, call)
	return r.questions[n]
}

// drop removes the question that was added last, and keeps its memory.
func (r *round) drop() {
	n := len(r.questions) - 1
	r.questions[n].reset()
	r.questions, r.calls = r.questions[:n], r.calls[:n]
}

// takeOut removes the question that was added last, and returns it. Its memory is not that of the round any
// more.
func (r *round) takeOut() *question {
	n := len(r.questions) - 1
	q := r.questions[n]
	r.questions[n] = nil
	r.questions, r.calls = r.questions[:n], r.calls[:n]
	return q
}

// reset empties the round and keeps its memory.
func (r *round) reset() {
	for _, q := range r.questions {
		q.reset()
	}
	r.batch.Reset()
	clear(r.calls)
	r.questions, r.calls = r.questions[:0], r.calls[:0]
}

const (
	// patience is how long the requests behind a round wait for it, and become one round themselves. A store that
	// is well answers within it.
	patience = 2 * time.Millisecond
	// maxRound bounds the messages of a round, in bytes: in memory they are up to fifty times as long.
	maxRound = 64 << 10
)

// answerCalls answers requests that arrived together. One call of the limiter decides those that take units. The
// others need several calls, one after the other, and each has a goroutine, or shares one if their messages are
// long together.
func (s *Service) answerCalls(b *grpcserver.Batch) {
	r, size, aloneSize := s.rounds.Get().(*round), 0, 0
	var alone []*question
	var aloneCalls, further []*grpcserver.Call
	for _, call := range b.Calls {
		if size += len(call.Message); size > maxRound && len(r.questions) > 0 {
			s.decideRound(b, r)
			r, size = s.rounds.Get().(*round), len(call.Message)
		}
		q := r.add(call)
		s.parse(q, call)
		switch {
		case q.err != nil || q.asksNothing(): // it need not wait for the others
			s.answerCall(q, call)
			r.drop()
		case !q.needsSeveralCalls():
		case aloneSize+len(call.Message) > maxRound:
			s.leave(r.takeOut())
			further = append(further, call)
		default:
			aloneSize += len(call.Message)
			alone, aloneCalls = append(alone, r.takeOut()), append(aloneCalls, call)
		}
	}
	s.decideRound(b, r)
	for i, q := range alone {
		b.Go(aloneCalls[i:i+1:i+1], func() { s.answerAlone(q, aloneCalls[i]) })
	}
	if len(further) > 0 {
		b.Go(further, func() { s.answerFurther(further) })
	}
}

// parse parses and prepares the request of a call.
func (s *Service) parse(q *question, call *grpcserver.Call) {
	q.req, q.err = q.parser.parse(call.Message)
	s.guard(q, func() { s.prepare(q, s.opts.Now()) })
}

// answerFurther answers requests that need several calls, one after the other.
func (s *Service) answerFurther(calls []*grpcserver.Call) {
	for _, call := range calls {
		q := new(question)
		s.parse(q, call)
		s.answerAlone(q, call)
	}
}

// decideRound decides and answers the requests of a round. A goroutine waits for a store that is slow.
func (s *Service) decideRound(b *grpcserver.Batch, r *round) {
	decided := true
	s.guardRound(r, func() { decided = s.ask(r) })
	if decided {
		s.answerRound(r)
		return
	}
	b.Go(slices.Clone(r.calls), func() {
		s.guardRound(r, func() { s.opts.Limiter.Await(&r.batch) })
		s.answerRound(r)
	})
}

// answerAlone answers a request by calls of its own.
func (s *Service) answerAlone(q *question, call *grpcserver.Call) {
	s.guard(q, func() { s.decide(q) })
	s.answerCall(q, call)
}

// answerRound answers the requests of a round whose batch is decided.
func (s *Service) answerRound(r *round) {
	for i, q := range r.questions {
		s.guard(q, func() { q.note(r.batch.Items(i)) })
		s.answerCall(q, r.calls[i])
	}
	if !r.broken {
		r.reset()
		s.rounds.Put(r)
	}
}

// guardRound calls do. A panic is the error of all requests of the round.
func (s *Service) guardRound(r *round, do func()) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked(p)
			r.broken = true
			for _, q := range r.questions {
				q.err = cmp.Or(q.err, errInternal)
			}
		}
	}()
	do()
}

// answerCall writes the answer to a request that is decided, and counts it.
func (s *Service) answerCall(q *question, call *grpcserver.Call) {
	s.guard(q, func() {
		call.Reply, q.err = proto.MarshalOptions{}.MarshalAppend(call.Reply, s.answer(q))
	})
	call.Err = q.err
	s.done(q)
}

var errInternal = status.Error(codes.Internal, "internal error")

// guard calls do, unless the question has an error. A panic is the error of the question alone.
func (s *Service) guard(q *question, do func()) {
	if q.err != nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.panicked(p)
			q.err = errInternal
		}
	}()
	do()
}

// panicked logs a panic.
func (s *Service) panicked(value any) {
	s.opts.Log.Error("request panicked", "panic", value, "stack", string(debug.Stack()))
}

// prepare binds the descriptors of a request to their limits, and refuses one that asks nothing, or too much,
// or beside too many others.
func (s *Service) prepare(q *question, now time.Time) {
	q.behaviour, q.now, q.native = &s.opts.Behaviour, now, s.isNative(q.req.GetDomain())
	if q.err = checkRequest(q.req, q.native); q.err != nil {
		return
	}
	s.reserve(q, len(q.req.GetDescriptors()))
	if q.err == nil && !q.native {
		s.resolve(q)
		s.reserve(q, len(q.bound)-len(q.req.GetDescriptors()))
		q.denyClosed()
		q.over = q.denies()
	}
}

// reserve counts descriptors of a request as being decided, until done is called. The request has an error if
// they are too many.
func (s *Service) reserve(q *question, n int) {
	if n == 0 {
		return
	}
	q.counted += int64(n)
	if s.inProgress.Add(int64(n)) > maxInProgress {
		q.err = errBusy
		s.leave(q)
	}
}

// leave ends the count of the descriptors of a request.
func (s *Service) leave(q *question) {
	s.inProgress.Add(-q.counted)
	q.counted = 0
}

// done counts a request that is answered.
func (s *Service) done(q *question) {
	s.leave(q)
	if q.err == nil {
		s.stats.count(q, s.opts.Now().Sub(q.now))
	}
}

// needsSeveralCalls reports whether one call of the limiter beside others does not decide a request. It charges
// or gives back whatever the answer is; a look or all quotas may deny it, so that it gives back what it took, which
// others of the round would miss; its looks may see what others hold for a moment; or it only looks, because a
// rule that admits nothing denies it.
func (q *question) needsSeveralCalls() bool {
	if q.native {
		return true
	}
	takes := false
	for i := range q.bound {
		switch b := &q.bound[i]; {
		case b.role == roleCharge, b.role == roleRefund, b.quota, b.limit != nil && b.hits == 0:
			return true
		case b.limit != nil:
			takes = true
		}
	}
	return takes && q.over
}

// asksNothing reports whether a request is decided without the limiter, and makes q.ask otherwise.
func (q *question) asksNothing() bool {
	if q.needsSeveralCalls() {
		return false
	}
	q.collect(roleTake)
	return len(q.ask) == 0
}

// ask begins to decide the requests of a round. It returns false if Limiter.Await must be called.
func (s *Service) ask(r *round) (decided bool) {
	for _, q := range r.questions {
		r.batch.Requests = append(r.batch.Requests, q.request())
	}
	return len(r.questions) == 0 || s.opts.Limiter.DecideWithin(&r.batch, patience)
}
