// Package httpfields makes the HTTP header fields that tell a client of its limit.
package httpfields

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// Format is a set of header fields.
type Format uint8

// The formats. All have Retry-After of RFC 9110 for a denied request that may be retried.
const (
	// Draft11 is RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-11, and
	// their predecessors RateLimit-Limit, -Remaining and -Reset.
	Draft11 Format = iota
	// Draft03 is X-RateLimit-Limit with its policy, -Remaining and -Reset as Envoy sends them,
	// after draft-ietf-httpapi-ratelimit-headers-03.
	Draft03
	// Legacy is X-RateLimit-Limit, -Remaining and -Reset as GitHub sends them: the reset is in
	// seconds since the epoch.
	Legacy
	// Off has no other field than Retry-After.
	Off
)

var formatNames = []string{Draft11: "draft-11", Draft03: "draft-03", Legacy: "legacy", Off: "off"}

// FormatNames returns the names of all formats, in their order.
func FormatNames() []string { return slices.Clone(formatNames) }

// ParseFormat returns the format of a name.
func ParseFormat(name string) (Format, bool) {
	n := slices.Index(formatNames, name)
	return Format(max(n, 0)), n >= 0
}

// String returns the name of the format.
func (f Format) String() string { return formatNames[f] }

// Exposed returns the names of the format's fields, separated by commas, as the value of
// Access-Control-Expose-Headers: browsers hide all others from scripts.
func (f Format) Exposed() string {
	switch f {
	case Draft11:
		return "RateLimit-Policy, RateLimit, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After"
	case Draft03, Legacy:
		return "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After"
	default:
		return "Retry-After"
	}
}

// Field is a header field.
type Field struct{ Name, Value string }

// MaxFields is the maximum number of fields of a decision.
const MaxFields = 6

// Append appends the fields of a decision that was made at now. Quota and window are those of the
// rate; remaining is never reported as more than the quota. Seconds are rounded up, so that no
// client comes back early. A decision without a limit has no fields. All values can be parsed as
// Structured Fields of RFC 9651: an id of a limit has no character that needs an escape.
func (f Format) Append(fields []Field, d *limit.Decision, now time.Time) []Field {
	wait := !d.Allowed && d.RetryAfter >= 0
	reset := ceilSeconds(d.ResetAfter)
	if wait {
		reset = ceilSeconds(d.RetryAfter)
	}
	if l := d.Binding; l != nil && l.Action == limit.ActionLimit {
		quota, window := quotaOf(l)
		remaining := min(d.Remaining, quota)
		switch f {
		case Draft11:
			fields = appendDraft11(fields, l, quota, window, remaining, reset)
		case Draft03:
			policy := number(quota)
			if window > 0 {
				policy += ", " + policy + ";w=" + number(window) + `;name="` + l.ID + `"`
			}
			fields = append(fields, Field{"X-RateLimit-Limit", policy}, Field{"X-RateLimit-Remaining", number(remaining)}, Field{"X-RateLimit-Reset", number(reset)})
		case Legacy:
			fields = append(fields, Field{"X-RateLimit-Limit", number(quota)}, Field{"X-RateLimit-Remaining", number(remaining)}, Field{"X-RateLimit-Reset", number(now.Unix() + reset)})
		}
	}
	if wait {
		fields = append(fields, Field{"Retry-After", number(reset)})
	}
	return fields
}

func appendDraft11(fields []Field, l *limit.Limit, quota, window, remaining, reset int64) []Field {
	var policy, state strings.Builder
	policy.WriteString(`"` + l.ID + `";q=` + number(quota))
	state.WriteString(`"` + l.ID + `";r=` + number(remaining))
	if window > 0 {
		policy.WriteString(";w=" + number(window))
		state.WriteString(";t=" + number(reset))
	} else {
		policy.WriteString(`;qu="concurrent-requests"`)
	}
	return append(fields,
		Field{"RateLimit-Policy", policy.String()}, Field{"RateLimit", state.String()},
		Field{"RateLimit-Limit", number(quota)}, Field{"RateLimit-Remaining", number(remaining)}, Field{"RateLimit-Reset", number(reset)})
}

// quotaOf returns the quota of a limit and its window in seconds, which is 0 for slots.
func quotaOf(l *limit.Limit) (quota, window int64) {
	if l.Params.Algorithm == bucket.AlgorithmConcurrency {
		return l.Params.Capacity, 0
	}
	return l.Rate.Count, windowSeconds(l)
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
		return max(1, l.Rate.Period/time.Second.Microseconds())
	}
}

// ceilSeconds returns a number of milliseconds in seconds, rounded up.
func ceilSeconds(ms int64) int64 { return max(0, (ms+999)/1000) }

func number(n int64) string { return strconv.FormatInt(n, 10) }
