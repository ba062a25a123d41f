package envoy

import (
	"math"
	"strconv"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// answer makes the response to a request that is decided.
func (s *Service) answer(q *question) *rls.RateLimitResponse {
	q.fold()
	r := &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK, Statuses: make([]*rls.RateLimitResponse_DescriptorStatus, len(q.bound))}
	if q.over {
		r.OverallCode = rls.RateLimitResponse_OVER_LIMIT
	}
	for i := range q.bound {
		r.Statuses[i] = q.bound[i].status(q.now)
	}
	tightest := q.tightest()
	if names := q.behaviour.ResponseHeaders; names != nil {
		r.ResponseHeadersToAdd = names.fields(tightest, q.now)
	}
	if wait, ok := q.retryAfter(); ok {
		r.ResponseHeadersToAdd = append(r.ResponseHeadersToAdd, &core.HeaderValue{Key: "Retry-After", Value: strconv.FormatInt(ceilSeconds(wait), 10)})
	}
	if names := q.behaviour.RequestHeaders; names != nil {
		r.RequestHeadersToAdd = names.fields(tightest, q.now)
	}
	if q.behaviour.Metadata {
		r.DynamicMetadata = q.metadata(q.req)
	}
	return r
}

// status returns the status of a descriptor.
func (b *bound) status(now time.Time) *rls.RateLimitResponse_DescriptorStatus {
	st := &rls.RateLimitResponse_DescriptorStatus{Code: rls.RateLimitResponse_OK}
	switch {
	case b.unlimited:
		st.LimitRemaining = math.MaxUint32
	case b.role == roleNone:
	default:
		if b.over && !b.shadow {
			st.Code = rls.RateLimitResponse_OVER_LIMIT
		}
		st.CurrentLimit = &rls.RateLimitResponse_RateLimit{RequestsPerUnit: b.policy.count, Unit: rls.RateLimitResponse_RateLimit_Unit(b.policy.unit), Name: b.policy.name}
		if b.policy.multiplier > 0 {
			st.CurrentLimit.UnitMultiplier = wrapperspb.UInt32(b.policy.multiplier)
		}
		if !b.over {
			st.LimitRemaining = b.left()
		}
		st.DurationUntilReset = durationpb.New(time.Duration(ceilSeconds(b.untilReset(now))) * time.Second)
	}
	return st
}

// ceilSeconds returns a duration in whole seconds, rounded up.
func ceilSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// tightest returns the descriptor whose limit the header fields describe: the last one that is over, or
// that with the least left, and nil without any. Limits in shadow mode are not for clients.
func (q *question) tightest() *bound {
	var found *bound
	for i := range q.bound {
		b := &q.bound[i]
		switch {
		case b.role == roleNone || b.role == roleRefund || b.shadow:
		case found == nil, b.over, !found.over && b.remaining < found.remaining:
			found = b
		}
	}
	return found
}

// retryAfter returns the time after which all limits that deny the request admit it: the last of the enforced
// ones, or the first of the quotas if only these deny. It returns false if there is none.
func (q *question) retryAfter() (wait time.Duration, ok bool) {
	enforced, quota := time.Duration(0), time.Duration(math.MaxInt64)
	for i := range q.bound {
		b := &q.bound[i]
		switch {
		case !b.over || b.shadow || b.role == roleNone || b.role == roleRefund:
		case b.quota && !b.never:
			quota = min(quota, b.untilReset(q.now))
		case b.quota:
		case b.never:
			return 0, false
		default:
			enforced = max(enforced, b.untilReset(q.now))
		}
	}
	if enforced > 0 {
		return enforced, q.over
	}
	return quota, q.over && quota < math.MaxInt64
}

// fields returns the header fields about a descriptor.
func (n *HeaderNames) fields(b *bound, now time.Time) []*core.HeaderValue {
	if b == nil {
		return nil
	}
	left := b.left()
	if b.over {
		left = 0
	}
	return []*core.HeaderValue{
		{Key: n.Limit, Value: strconv.FormatUint(uint64(b.policy.count), 10)},
		{Key: n.Remaining, Value: strconv.FormatUint(uint64(left), 10)},
		{Key: n.Reset, Value: strconv.FormatInt(ceilSeconds(b.untilReset(now)), 10)},
	}
}
