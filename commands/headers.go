package commands

import (
	"strconv"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// headers appends HTTP header fields for a decision, as a flat list of names and values:
// RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-10, their
// predecessors RateLimit-Limit, -Remaining and -Reset, and for a denied request that may
// be retried Retry-After of RFC 9110. Quota and window are those of the rate; remaining
// is never reported as more than the quota. Without a limit the list is empty.
func (r *reply) headers(d *limit.Decision) {
	if d.Binding == nil || d.Binding.Action != limit.ActionLimit {
		r.array(0)
		return
	}
	l := d.Binding
	quota, remaining := l.Rate.Count, min(d.Remaining, l.Rate.Count)
	reset := ceilSeconds(d.ResetAfter)
	wait := !d.Allowed && d.RetryAfter >= 0
	if wait {
		reset = ceilSeconds(d.RetryAfter)
	}
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	pairs := [...]string{
		"RateLimit-Policy", `"` + l.ID + `";q=` + n(quota) + ";w=" + n(windowSeconds(l)),
		"RateLimit", `"` + l.ID + `";r=` + n(remaining) + ";t=" + n(reset),
		"RateLimit-Limit", n(quota),
		"RateLimit-Remaining", n(remaining),
		"RateLimit-Reset", n(reset),
		"Retry-After", n(reset),
	}
	shown := pairs[:]
	if !wait {
		shown = pairs[:len(pairs)-2]
	}
	r.array(len(shown))
	for _, text := range shown {
		r.bulk(text)
	}
}

// windowSeconds returns the window of a limit: its period; 24 hours for a calendar day
// and 30 days for a month.
func windowSeconds(l *limit.Limit) int64 {
	const day = 24 * 3600
	switch l.Rate.Calendar {
	case bucket.CalendarDay:
		return day
	case bucket.CalendarMonth:
		return 30 * day
	default:
		return l.Rate.Period / second
	}
}
