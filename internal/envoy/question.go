package envoy

import (
	"math"
	"slices"
	"strings"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/limiter"
)

// question is a request with its descriptors bound to limits, and the memory that deciding needs. It is
// reused, and not safe for concurrent use.
type question struct {
	parser parser
	req    *rls.RateLimitRequest // may be that of the parser
	err    error                 // in place of an answer
	native bool                  // its domain is one of Options.Native

	behaviour *Behaviour
	domain    *rlsconfig.Domain // nil if there is none of the name
	bound     []bound
	now       time.Time
	over      bool // the answer
	// counted is the number of its descriptors in Service.inProgress.
	counted int64

	entries []rlsconfig.Entry
	names   []byte // of the counters
	batch   limiter.Batch
	ask     []limit.Descriptor
	asked   []int // the descriptors of ask, as indexes of bound
}

// What a question keeps for the next request is bounded: usual ones have some hundred bytes of names, and some
// ten entries.
const (
	maxKeptNames   = 16 << 10
	maxKeptEntries = 64
)

func (q *question) reset() {
	q.batch.Reset()
	q.parser.reset()
	clear(q.bound)
	clear(q.entries)
	clear(q.ask)
	if cap(q.names) > maxKeptNames || cap(q.entries) > maxKeptEntries || cap(q.bound) > maxKeptEntries {
		*q = question{}
		return
	}
	q.bound, q.entries, q.ask, q.asked, q.names = q.bound[:0], q.entries[:0], q.ask[:0], q.asked[:0], q.names[:0]
	q.req, q.err, q.native, q.counted = nil, nil, false, 0
	q.behaviour, q.domain, q.over = nil, nil, false
}

// role is what a descriptor does to its counter.
type role uint8

const (
	roleNone   role = iota // no counter
	roleTake               // takes units if the request is admitted, or none
	roleCharge             // takes units whatever the answer is
	roleRefund             // gives units back
)

// bound is a descriptor with the rule that it meets, and its result.
type bound struct {
	rule   *rlsconfig.Rule // nil if it meets none, or brings its own limit
	met    metRule         // whose counters count it
	limit  *limit.Limit    // nil if nothing is counted
	policy policy
	role   role
	// onDenied is what the extensions say of the role.
	onDenied rlsconfig.OnDenied
	// shadow and quota say how the verdict counts for the answer. Unlimited is said in the status.
	shadow, quota, unlimited bool
	hits                     int64
	counter, slot            string

	// reset is the time until a limit resets whose windows do not follow from its policy, or the wait if it
	// denies, and else 0. Never reports that the limit never admits as many hits.
	reset time.Duration
	never bool
	// invalid reports that the descriptor carries a limit whose unit does not exist: its rule applies.
	invalid bool
	check   limit.Request // of a descriptor in a native domain

	over      bool
	remaining int64

	// of is the number of the descriptor, from 1, that a further limit of its rule belongs to; 0 is the
	// descriptor itself.
	of int
}

// metRule is a rule that a descriptor met, with its entries.
type metRule struct {
	rule    *rlsconfig.Rule
	limits  *ruleLimits // nil without a rule
	entries []rlsconfig.Entry
}

// policy is a limit as the request or the configuration states it.
type policy struct {
	count      uint32
	unit       rlsconfig.Unit
	multiplier uint32 // of the unit; 0 if none is stated
	name       string
}

// seconds returns the length of the window.
func (p *policy) seconds() int64 { return p.unit.Seconds() * int64(max(1, p.multiplier)) }

// resolve binds the descriptors of a request.
func (s *Service) resolve(q *question) {
	c, req := s.config.Load(), q.req
	q.domain = c.rules.Domain(req.GetDomain())
	for _, d := range req.GetDescriptors() {
		b := bound{}
		if q.domain != nil {
			s.bind(q, c, d, &b)
		}
		b.hits = hitsOf(d, req)
		if b.policy.unit != rlsconfig.UnitUnknown { // else nothing is counted
			b.role = roleOf(d, b.onDenied)
		}
		q.bound = append(q.bound, b)
	}
	q.replace()
	q.addFurther(c)
}

// addFurther appends the further limits of the rules that descriptors meet.
func (q *question) addFurther(c *config) {
	for i, n := 0, len(q.bound); i < n; i++ {
		b := q.bound[i]
		if b.rule == nil || b.role == roleNone || b.limit == nil {
			continue
		}
		r := c.limits[b.rule]
		base := strings.TrimSuffix(b.counter, r.suffix)
		for _, l := range r.also {
			further := bound{policy: l.policy, role: b.role, shadow: b.shadow, quota: b.quota, hits: b.hits, slot: b.slot, of: i + 1}
			further.limit = l.limit(b.limit.Mode == limit.ModeShadow)
			further.counter = q.name(func(dst []byte) []byte { return append(append(dst, base...), l.suffix...) })
			q.bound = append(q.bound, further)
		}
	}
}

// hitsOf returns the hits of a descriptor: its own, or those of the request.
func hitsOf(d *ratelimit.RateLimitDescriptor, req *rls.RateLimitRequest) int64 {
	if hits := d.GetHitsAddend(); hits != nil {
		return int64(min(hits.GetValue(), bucket.MaxCapacity+1)) // more fits in no bucket
	}
	return int64(max(1, req.GetHitsAddend()))
}

// roleOf returns what a descriptor does to its counter. A look takes nothing in any case.
func roleOf(d *ratelimit.RateLimitDescriptor, onDenied rlsconfig.OnDenied) role {
	own, looks := d.GetHitsAddend().GetValue() > 0, d.GetHitsAddend() != nil && d.GetHitsAddend().GetValue() == 0
	switch {
	case d.GetIsNegativeHits():
		return roleRefund
	case looks || onDenied == rlsconfig.OnDeniedNothing:
		return roleTake
	case own || onDenied == rlsconfig.OnDeniedCount:
		return roleCharge
	default:
		return roleTake
	}
}

// bind finds the rule and the limit of a descriptor.
func (s *Service) bind(q *question, c *config, d *ratelimit.RateLimitDescriptor, b *bound) {
	begin := len(q.entries)
	for _, e := range d.GetEntries() {
		q.entries = append(q.entries, rlsconfig.Entry{Key: e.GetKey(), Value: e.GetValue()})
	}
	entries := q.entries[begin:]
	b.rule, b.onDenied = q.domain.Match(entries), q.domain.OnDenied
	if own := d.GetLimit(); own != nil {
		if p, ok := policyOf(own); ok {
			b.policy = p
			s.bindOverride(q, c, entries, b)
			return
		}
		b.invalid = true
	}
	if b.rule == nil || b.rule.Limit == nil {
		return
	}
	r := c.limits[b.rule]
	b.met, b.unlimited = metRule{b.rule, r, entries}, b.rule.Limit.Unlimited
	if b.unlimited {
		return
	}
	b.policy = policy{count: b.rule.Limit.RequestsPerUnit, unit: b.rule.Limit.Unit, name: b.rule.Limit.Name}
	b.shadow, b.quota = b.rule.Shadow, b.rule.Quota || q.behaviour.Quota
	b.limit, b.onDenied = r.limit(b.shadow || b.quota || q.behaviour.Shadow), b.rule.OnDenied
	b.slot = q.domain.Slot(b.rule, entries, s.opts.HashAddr)
	b.counter = q.name(func(dst []byte) []byte {
		return append(b.rule.AppendCounter(dst, entries, s.opts.HashAddr), r.suffix...)
	})
}

// name appends a name to those of the counters, and returns it.
func (q *question) name(appendTo func(dst []byte) []byte) string {
	begin := len(q.names)
	q.names = appendTo(q.names)
	return string(q.names[begin:])
}

// policyOf returns the limit that a descriptor carries. One with a unit that does not exist is left
// out: the rule applies then.
func policyOf(own *ratelimit.RateLimitDescriptor_RateLimitOverride) (policy, bool) {
	unit, ok := unitOf(own.GetUnit())
	p := policy{count: own.GetRequestsPerUnit(), unit: unit}
	if m := own.GetUnitMultiplier(); m != nil {
		p.multiplier = m.GetValue()
		ok = ok && p.multiplier > 0
	}
	return p, ok && p.seconds() <= bucket.MaxPeriod/1_000_000
}

// replace drops the limits that others of the request replace.
func (q *question) replace() {
	for i := range q.bound {
		r := q.bound[i].rule
		if r == nil || len(r.Replaces) == 0 {
			continue
		}
		for j := range q.bound {
			if b := &q.bound[j]; i != j && b.policy.name != "" && slices.Contains(r.Replaces, b.policy.name) {
				*b = bound{rule: b.rule, hits: b.hits}
			}
		}
	}
}

// untilReset returns the time to the end of the window.
func (b *bound) untilReset(now time.Time) time.Duration {
	if b.reset > 0 || b.policy.unit == rlsconfig.UnitUnknown { // a check that no limit admits has no policy
		return b.reset
	}
	period := time.Duration(b.policy.seconds()) * time.Second
	return period - time.Duration(now.UnixNano()%int64(period))
}

// left returns the remaining units for a status.
func (b *bound) left() uint32 { return uint32(min(max(b.remaining, 0), math.MaxUint32)) }
