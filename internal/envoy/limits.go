package envoy

import (
	"strconv"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/limit"
)

// config is a configuration with the limits of its rules.
type config struct {
	rules  *rlsconfig.Config
	limits map[*rlsconfig.Rule]*ruleLimits
}

// ruleLimits are the limits of a rule and its counters, which the rules of a path keep when the
// configuration is replaced.
type ruleLimits struct {
	enforced, shadow *limit.Limit // nil for a rule that admits nothing
	suffix           string       // of the names of its counters
	stats            *ruleStats
	valued           bool          // values of requests are part of its labels
	also             []*ruleLimits // further limits of the rule, which have policies
	policy           policy
}

// limit returns the limit of the rule, in shadow mode or to decide.
func (r *ruleLimits) limit(shadow bool) *limit.Limit {
	if shadow {
		return r.shadow
	}
	return r.enforced
}

// extend takes the limit of an extension.
func (r *ruleLimits) extend(c *rlsconfig.Counted) {
	r.enforced, r.shadow, r.suffix = c.Limit, c.Limit.InMode(limit.ModeShadow), c.Suffix
}

func newConfig(rules *rlsconfig.Config, stats *Stats) *config {
	c := &config{rules: rules, limits: map[*rlsconfig.Rule]*ruleLimits{}}
	for _, r := range rules.Limited() {
		own := &ruleLimits{stats: stats.ofRule(r), valued: r.StatKeysVary()}
		switch {
		case r.Own.Limit != nil:
			own.extend(&r.Own)
		case !r.Limit.Unlimited:
			own.enforced, own.shadow = newLimits(r.Domain+"."+r.Path, policy{count: r.Limit.RequestsPerUnit, unit: r.Limit.Unit})
		}
		for i := range r.Also {
			also := &ruleLimits{policy: policyOfRate(&r.Also[i].Limit.Rate)}
			also.policy.name = r.Also[i].Name
			also.extend(&r.Also[i])
			own.also = append(own.also, also)
		}
		c.limits[r] = own
	}
	stats.keep(c)
	return c
}

// newLimits returns the limit of a policy, once to decide and once in shadow mode. Both are nil if the policy
// admits nothing.
func newLimits(id string, p policy) (enforced, shadow *limit.Limit) {
	count, period := int64(p.count), p.seconds()*1_000_000
	enforced, err := limit.NewDescriptorLimit(id, count, period, limit.ModeEnforce)
	if err != nil { // the count is 0: all other numbers are within the bounds
		return nil, nil
	}
	shadow, _ = limit.NewDescriptorLimit(id, count, period, limit.ModeShadow)
	return enforced, shadow
}

// maxOverrides bounds the limits of descriptors that are kept: requests carry a handful, and one that is
// not kept is made again.
const maxOverrides = 4096

// overrides keeps the limits that requests carry. It is safe for concurrent use.
type overrides struct {
	known *lru.Cache[overrideKey, *ruleLimits]
}

type overrideKey struct {
	domain  string
	count   uint32
	seconds int64
	closed  bool // the domain fails closed
}

func newOverrides() *overrides {
	known, err := lru.New[overrideKey, *ruleLimits](maxOverrides)
	if err != nil {
		panic(err) // lru.New fails only for a size that is not positive
	}
	return &overrides{known}
}

// of returns the limits of an override.
func (o *overrides) of(domain *rlsconfig.Domain, p policy) *ruleLimits {
	key := overrideKey{domain.Name, p.count, p.seconds(), domain.FailsClosed}
	if l, ok := o.known.Get(key); ok {
		return l
	}
	l := &ruleLimits{}
	l.enforced, l.shadow = newLimits(domain.Name+" (limit of the request)", p)
	if domain.FailsClosed && l.enforced != nil {
		l.enforced.CloseByDefault()
		l.shadow.CloseByDefault()
	}
	o.known.Add(key, l)
	return l
}

// bindOverride binds a descriptor to the limit that it carries. It has a counter for each length of a
// window, whatever the number is, so that it keeps its units when the number changes. Nothing else of its rule applies.
func (s *Service) bindOverride(q *question, c *config, entries []rlsconfig.Entry, b *bound) {
	b.quota = q.behaviour.Quota
	b.limit = s.overrides.of(q.domain, b.policy).limit(b.quota || q.behaviour.Shadow)
	b.slot = q.domain.OwnSlot(entries, s.opts.HashAddr)
	b.counter = q.name(func(dst []byte) []byte {
		dst = append(q.domain.AppendCounter(dst, entries, s.opts.HashAddr), ";;"...)
		return strconv.AppendInt(dst, b.policy.seconds(), 10)
	})
	if r := c.limits[b.rule]; r != nil {
		b.met = metRule{b.rule, r, entries}
	}
	b.rule = nil
}

// unitOf returns the unit of a request, or false if it does not exist. Its numbers are those of the
// configuration.
func unitOf(u ratelimit.RateLimitUnit) (rlsconfig.Unit, bool) {
	if u < ratelimit.RateLimitUnit(rlsconfig.UnitSecond) || u > ratelimit.RateLimitUnit(rlsconfig.UnitWeek) {
		return rlsconfig.UnitUnknown, false
	}
	return rlsconfig.Unit(u), true
}
