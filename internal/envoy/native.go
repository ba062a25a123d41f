package envoy

import (
	"math"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// anonymous is the tenant of descriptors that name none.
const anonymous = "anonymous"

// decideNative decides a request of a domain without rules: each descriptor is a check by the limits of plans.
// Its entries tenant, op and ip are those of RL.CHECK, remote_address is an ip too, and other keys are
// dimensions. A value that no check can have counts as missing: clients choose values.
func (s *Service) decideNative(q *question) {
	for _, d := range q.req.GetDescriptors() {
		b := bound{hits: hitsOf(d, q.req), role: roleOf(d, rlsconfig.OnDeniedDefault)}
		b.check = s.checkOf(d)
		b.check.Cost = min(max(b.hits, 1), bucket.MaxCost)
		q.bound = append(q.bound, b)
	}
	for i := range q.bound {
		if b := &q.bound[i]; b.role == roleCharge || b.hits == 0 {
			s.settleNative(q, b)
		}
	}
	s.takeNative(q)
	q.over = q.denies()
	for i := range q.bound {
		if b := &q.bound[i]; b.role == roleRefund {
			s.refundNative(q, b)
		}
	}
}

// settleNative decides a descriptor that does not depend on others: one that looks, or one that is charged
// whatever the answer is, if need be with what is left.
func (s *Service) settleNative(q *question, b *bound) {
	decide := s.opts.Limiter.Decide
	if b.hits == 0 {
		decide = s.opts.Limiter.Peek
	}
	check := b.check
	for attempt := range chargeAttempts {
		q.batch.Reset()
		q.batch.Requests = append(q.batch.Requests, check)
		decide(&q.batch)
		d := &q.batch.Decisions[0]
		if attempt == 0 {
			b.decided(d, q.batch.Items(0))
		}
		if b.hits == 0 {
			b.giveBack(d, q.batch.Items(0))
			return
		}
		if check.Cost = fitting(check.Cost, q.batch.Items(0)); d.Allowed || check.Cost == 0 {
			return
		}
	}
}

// fitting returns how much of a cost, that items were decided with, all of them have left.
func fitting(cost int64, items []limit.Item) int64 {
	fits := cost
	for i := range items {
		it := &items[i]
		switch {
		case !it.Enforced() || it.Source == limit.SourceNone || it.Allowed:
		case it.Limit.MaxCost > 0 && cost > it.Limit.MaxCost:
			fits = min(fits, it.Limit.MaxCost)
		case it.Limit.FixedCost > 0: // which a smaller cost does not change
			return 0
		default:
			fits = min(fits, max(it.Remaining, 0))
		}
	}
	return fits
}

// takeNative decides the descriptors that are taken together or not at all. If the request is denied
// already, it only looks.
func (s *Service) takeNative(q *question) {
	q.batch.Reset()
	q.asked = q.asked[:0]
	for i := range q.bound {
		b := &q.bound[i]
		if b.role != roleTake || b.hits == 0 {
			continue
		}
		if b.hits > bucket.MaxCost { // no check costs as much
			b.over = true
			continue
		}
		q.asked = append(q.asked, i)
		q.batch.Requests = append(q.batch.Requests, b.check)
	}
	if len(q.asked) == 0 {
		return
	}
	denied, decide := q.denies(), s.opts.Limiter.Decide
	if denied {
		decide = s.opts.Limiter.Peek
	}
	decide(&q.batch)
	for i, n := range q.asked {
		q.bound[n].decided(&q.batch.Decisions[i], q.batch.Items(i))
	}
	if !q.denies() {
		return
	}
	var taken []int
	for i, n := range q.asked {
		d := &q.batch.Decisions[i]
		if d.Allowed && !denied {
			taken = append(taken, i)
		}
		q.bound[n].giveBack(d, q.batch.Items(i))
	}
	s.opts.Limiter.TakeBack(&q.batch, taken...)
}

// giveBack makes the status that of a check which took nothing, if the decision about its items admitted
// it.
func (b *bound) giveBack(d *limit.Decision, items []limit.Item) {
	if d.Allowed && d.Item >= 0 {
		b.remaining = min(d.Remaining+items[d.Item].Cost, int64(b.policy.count))
	}
}

// refundNative gives units back to the tenant's own buckets, if this service may.
func (s *Service) refundNative(q *question, b *bound) {
	if b.hits > 0 && s.opts.MayRefund {
		s.opts.Limiter.Credit(&q.batch, &b.check)
	} else if b.hits > 0 {
		s.stats.refusedRefunds.Add(1)
	}
	q.batch.Reset()
	check := b.check
	check.Cost = 1
	q.batch.Requests = append(q.batch.Requests, check)
	s.opts.Limiter.Peek(&q.batch)
	b.decided(&q.batch.Decisions[0], q.batch.Items(0))
	b.giveBack(&q.batch.Decisions[0], q.batch.Items(0))
	b.over = false
}

// decided notes the decision about a descriptor.
func (b *bound) decided(d *limit.Decision, items []limit.Item) {
	if b.unlimited = d.Item < 0; b.unlimited {
		b.role = roleNone
		return
	}
	l := items[d.Item].Limit
	b.over, b.remaining = !d.Allowed, d.Remaining
	b.policy = policyOfRate(&l.Rate)
	b.policy.name = l.ID
	wait := d.ResetAfter
	if b.over {
		b.remaining, wait = 0, d.RetryAfter
	}
	b.remaining = min(b.remaining, int64(b.policy.count))
	b.wait(wait)
}

// wait sets the time until the limit resets, in milliseconds.
func (b *bound) wait(ms int64) {
	b.never = ms == bucket.Never
	if b.reset = time.Duration(ms) * time.Millisecond; b.never {
		b.reset = time.Duration(b.policy.seconds()) * time.Second
	}
	b.reset = max(b.reset, time.Second)
}

// policyOfRate returns a rate in the units of Envoy.
func policyOfRate(r *bucket.Rate) policy {
	p := policy{count: uint32(min(r.Count, math.MaxUint32))}
	switch r.Calendar {
	case bucket.CalendarDay:
		p.unit = rlsconfig.UnitDay
		return p
	case bucket.CalendarMonth:
		p.unit = rlsconfig.UnitMonth
		return p
	}
	seconds := max(r.Period/1_000_000, 1)
	for _, u := range []rlsconfig.Unit{rlsconfig.UnitWeek, rlsconfig.UnitDay, rlsconfig.UnitHour, rlsconfig.UnitMinute, rlsconfig.UnitSecond} {
		if p.unit = u; seconds%u.Seconds() == 0 {
			if n := seconds / u.Seconds(); n > 1 {
				p.multiplier = uint32(n)
			}
			break
		}
	}
	return p
}

// checkOf returns the check of a descriptor, without its cost. Of two entries with a key the first counts.
func (s *Service) checkOf(d *ratelimit.RateLimitDescriptor) (r limit.Request) {
	for _, e := range d.GetEntries() {
		key, value := e.GetKey(), e.GetValue()
		switch key {
		case "tenant":
			if r.Tenant == "" && value != "-" && limit.CheckName(value) == nil {
				r.Tenant = value
			}
		case "op":
			if r.Op == "" && value != "-" && limit.CheckOp(value) == nil {
				r.Op = value
			}
		case "ip", "remote_address":
			if addr, err := limit.ParseAddr(value); err == nil && !r.Addr.IsValid() {
				r.Addr = addr
			}
		default:
			if key == "masked_remote_address" && s.opts.HashAddr != nil { // names of buckets have no address
				value = string(s.opts.HashAddr(nil, value))
			}
			value = limit.FitValue(value)
			_, twice := r.Dimension(key)
			if !twice && len(r.Dims) < limit.MaxDims && !limit.ReservedDim(key) && limit.CheckName(key) == nil && limit.CheckName(value) == nil {
				r.Dims = append(r.Dims, limit.Dim{Name: key, Value: value})
			}
		}
	}
	if r.Tenant == "" {
		r.Tenant = anonymous
	}
	return r
}
