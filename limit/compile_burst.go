package limit

import (
	"fmt"

	"github.com/limitgate/limitgate/limit/bucket"
)

// noteBurst notes an override that raises a rate to twice as much or more, above the burst of its limit, which it keeps, or lowers it to half
// or less: 500/s beside a burst of 20 admits 20 at a time, and 5/s beside one of 200 admits 200. It notes it once for a limit.
func (c *compiler) noteBurst(o *RuleSpec, field string, of, l *Limit) {
	if !o.Rate.Set() || o.Burst.Set() || !of.isTokenBucket() || !l.isTokenBucket() || l.Mode == ModeOff {
		return
	}
	perUs := func(p bucket.Params) float64 { return float64(p.Count) / float64(p.Period) }
	alike := float64(l.Params.Capacity) * perUs(l.Params) / perUs(of.Params)
	how, lower := "raise", max(int64(alike), l.MaxCost, l.FixedCost, 1)
	switch held := l.Params.Capacity; {
	case alike >= float64(2*held) && alike <= bucket.MaxCapacity && held < l.Rate.Count:
	case alike < float64(held) && lower <= held/2 && held > l.Rate.Count:
		alike = float64(lower)
		how = "lower"
	default:
		return
	}
	text := fmt.Sprintf("%s has a rate of %s for this tenant, and keeps its burst of %d: write burst: %d to %s it alike", Quote(l.ID), l.Rate.Text, l.Params.Capacity, int64(alike), how)
	known := len(c.warnings)
	if c.warnOnce([3]string{l.Plan, l.ID, "the burst, to " + how}, o.Rate.Line, field+"."+l.ID+".rate", text); len(c.warnings) > known {
		c.warnings[known].Note = true
	}
}

// isTokenBucket reports whether a limit counts in a token bucket whose rate is no mistake.
func (l *Limit) isTokenBucket() bool {
	return l.hasRate() && l.Params.Count > 0 && l.Params.Algorithm == bucket.AlgorithmTokenBucket
}
