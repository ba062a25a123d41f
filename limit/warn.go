package limit

import "math/bits"

// compileWarn reads the part of a limit's capacity from which its use is worth a warning.
func (c *compiler) compileWarn(spec *RuleSpec, l *Limit) {
	if !spec.Warn.Set() {
		return
	}
	parts, err := parsePercentage(spec.Warn.Value)
	switch {
	case err != nil:
		c.fail(spec.Warn.Line, "warn", "%s", err)
	case parts == 0 || parts > percentParts:
		c.fail(spec.Warn.Line, "warn", "%s is not a part of the capacity that can be in use: say more than 0%% and at most 100%%", Quote(spec.Warn.Value))
	case l.Action != ActionLimit:
		c.fail(spec.Warn.Line, "warn", "action: %s counts nothing that could come near its end: remove one of them", l.Action)
	default:
		l.warn = parts
	}
}

// Warns reports whether the limit says when a bucket is nearly used up.
func (l *Limit) Warns() bool { return l.warn > 0 }

// Near reports whether a bucket of the limit with the remaining units is nearly used up: the part of
// its capacity from which the limit warns is in use. It is false of a limit that does not warn.
func (l *Limit) Near(remaining int64) bool {
	if l.warn == 0 {
		return false
	}
	// remaining / capacity <= 1 - warn / percentParts
	leftHigh, leftLow := bits.Mul64(uint64(max(remaining, 0)), percentParts)
	high, low := bits.Mul64(uint64(l.Params.Capacity), uint64(percentParts-l.warn))
	return compareUint128(leftHigh, leftLow, high, low) <= 0
}

// DescribeWarn returns the part of the capacity from which the limit warns, such as 80%, or "".
func (l *Limit) DescribeWarn() string {
	if l.warn == 0 {
		return ""
	}
	return formatPercentage(l.warn)
}

// NearLimit reports whether an admitted request left the bucket of its binding limit nearly used up. It
// is false where a share of one proxy decided, which says nothing about the bucket.
func (d *Decision) NearLimit() bool {
	return d.Allowed && d.Binding != nil && d.Binding.Store == PlacementShared && d.Source != SourceBackstop && d.Binding.Near(d.Remaining)
}
