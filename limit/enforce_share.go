package limit

import (
	"fmt"
	"net/netip"
)

// parseShare parses a percentage above 0 and below 100, as parts of percentParts.
func parseShare(text string) (parts int, err error) {
	if parts, err = parsePercentage(text); err != nil {
		return 0, err
	}
	switch {
	case parts == 0:
		return 0, fmt.Errorf("0%% of the buckets is mode: shadow: say so")
	case parts == percentParts:
		return 0, fmt.Errorf("100%% of the buckets is what a limit does anyway: remove it")
	case parts > percentParts:
		return 0, fmt.Errorf("%s is more than all buckets: write less than 100%%, or leave enforce out", Quote(text))
	}
	return parts, nil
}

// compileShare reads the share of buckets in which a limit is enforced.
func (c *compiler) compileShare(spec *RuleSpec, l *Limit) {
	if !spec.Enforce.Set() {
		return
	}
	parts, err := parseShare(spec.Enforce.Value)
	switch {
	case err != nil:
		c.fail(spec.Enforce.Line, "enforce", "%s", err)
	case l.Mode != ModeEnforce:
		c.fail(spec.Enforce.Line, "enforce", "mode: %s enforces nothing: remove one of them", l.Mode)
	case l.Action != ActionLimit:
		c.fail(spec.Enforce.Line, "enforce", "action: %s has no buckets, of which a share could be enforced: remove one of them", l.Action)
	default:
		l.share, l.shareBits = parts, c.opts.Prefixes.orDefault()
	}
}

// shadow returns the limit that watches the buckets in which l, which has a share, is not enforced. It
// has the same buckets, so that their counts go on when the share changes.
func (l *Limit) shadow() *Limit {
	if l.shadowed == nil {
		s := *l
		s.Mode = ModeShadow
		l.shadowed = &s
	}
	return l.shadowed
}

// isShadowSide reports whether l is the shadow of a limit that is enforced in a share of its buckets:
// where limits are listed, that one stands for both.
func (l *Limit) isShadowSide() bool { return l.share > 0 && l.Mode == ModeShadow }

// inShare reports whether the bucket of a request is among those in which a limit is enforced, and
// not only watched. All proxies agree, and a larger share has the buckets of a smaller one. It is
// the 64-bit FNV-1a hash of the id and the values that the limit counts by, each after a zero byte,
// spread by a multiplication: http://www.isthe.com/chongo/tech/comp/fnv/
func (l *Limit) inShare(req *Request) bool {
	const offset, prime, spread = 14695981039346656037, 1099511628211, 0x9e3779b97f4a7c15
	hash := uint64(offset)
	add := func(text string) {
		for i := range len(text) {
			hash = (hash ^ uint64(text[i])) * prime
		}
		hash *= prime // a zero byte
	}
	add(l.ID)
	if l.byTenant {
		add(req.Tenant)
	}
	for i := range l.by {
		choice, value, ok := l.by[i].pick(req)
		switch {
		case !ok:
			add("")
		case choice.kind == propertyIP:
			bytes := l.shareBits.client(req.Addr).As16()
			add(string(bytes[:]))
		default:
			add(choice.label)
			add(value)
		}
	}
	return (hash*spread)>>32*percentParts>>32 < uint64(l.share)
}

// isOtherShare reports whether an explanation leaves l out, because its counterpart for the other
// buckets applies to the request. If neither does, the enforced one is explained.
func (l *Limit) isOtherShare(req *Request) bool {
	if l.share == 0 || l.applies(req) {
		return false
	}
	return l.Mode == ModeShadow || l.matches(req) && (l.Missing != MissingPass || l.missing(req) == nil)
}

// DescribeMode returns the mode of a limit as in a limits file, and the share of its buckets in which
// it is enforced.
func (l *Limit) DescribeMode() string {
	if l.share == 0 {
		return l.Mode.String()
	}
	share := formatPercentage(l.share)
	if l.Mode == ModeShadow {
		return "shadow, " + share + " enforced"
	}
	return "enforce " + share
}

// EnforcedAlways reports whether a limit is enforced in all of its buckets.
func (l *Limit) EnforcedAlways() bool { return l.Mode == ModeEnforce && l.share == 0 }

// enforcedIn returns the share of a limit's buckets in which it is enforced, in percentParts.
func (l *Limit) enforcedIn() int {
	switch {
	case l.Mode != ModeEnforce:
		return 0
	case l.share == 0:
		return percentParts
	}
	return l.share
}

// client returns the address that stands for all that make one client.
func (p Prefixes) client(addr netip.Addr) netip.Addr {
	bits := p.IPv6
	if addr.Is4() {
		bits = p.IPv4
	}
	if prefix, err := addr.Prefix(bits); err == nil {
		return prefix.Addr()
	}
	return addr
}
