// Package httpfields makes the HTTP header fields that tell a client of its limit, and knows those that have secrets.
package httpfields

import (
	"slices"
	"strconv"
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
		return "RateLimit-Policy, RateLimit, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, RateLimit-Near-Limit, Retry-After"
	case Draft03, Legacy:
		return "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-RateLimit-Near-Limit, Retry-After"
	default:
		return "Retry-After"
	}
}

// Field is a header field.
type Field struct{ Name, Value []byte }

// MaxFields is the maximum number of fields of a decision, and MaxBytes that of all their values.
const (
	MaxFields = 6
	MaxBytes  = 512
)

// The names, as their specifications write them.
var (
	rateLimitPolicy, rateLimit                           = []byte("RateLimit-Policy"), []byte("RateLimit")
	rateLimitLimit, rateLimitRemaining, rateLimitReset   = []byte("RateLimit-Limit"), []byte("RateLimit-Remaining"), []byte("RateLimit-Reset")
	xRateLimitLimit, xRateLimitRemaining, xRateLimitTime = []byte("X-RateLimit-Limit"), []byte("X-RateLimit-Remaining"), []byte("X-RateLimit-Reset")
	rateLimitNear, xRateLimitNear                        = []byte("RateLimit-Near-Limit"), []byte("X-RateLimit-Near-Limit")
	retryAfter                                           = []byte("Retry-After")
)

// Append appends the fields of a decision to fields, with values in buf, to which it appends up to
// MaxBytes. Now returns the time, which only Legacy needs. Quota and window are those of the rate;
// remaining is never reported as more than the quota. Seconds are rounded up, so that no client
// comes back early. An admitted request that leaves its bucket nearly used up, see limit.Decision.NearLimit, gets
// the id of the limit too. A decision without a limit has no fields. All values can be parsed as
// Structured Fields of RFC 9651: an id of a limit has no character that needs an escape.
func (f Format) Append(fields []Field, buf []byte, d *limit.Decision, now func() time.Time) []Field {
	w := writer{fields: fields, buf: buf}
	wait := !d.Allowed && d.RetryAfter >= 0
	reset := Seconds(d.ResetAfter)
	if wait {
		reset = Seconds(d.RetryAfter)
	}
	if l := d.Binding; l != nil && l.Action == limit.ActionLimit {
		quota, window := quotaOf(l)
		remaining := min(d.Remaining, quota)
		switch f {
		case Draft11:
			w.draft11(l, quota, window, remaining, reset)
		case Draft03:
			w.draft03(l, quota, window)
			w.number(xRateLimitRemaining, remaining)
			w.number(xRateLimitTime, reset)
		case Legacy:
			w.number(xRateLimitLimit, quota)
			w.number(xRateLimitRemaining, remaining)
			w.number(xRateLimitTime, now().Unix()+reset)
		}
		if d.NearLimit() {
			w.near(f, l)
		}
	}
	if wait {
		w.number(retryAfter, reset)
	}
	return w.fields
}

// writer writes values into a buffer.
type writer struct {
	fields []Field
	buf    []byte
	begin  int // of the value being written
}

// text appends to the value.
func (w *writer) text(s string) { w.buf = append(w.buf, s...) }

// parameter appends a name and an integer to the value.
func (w *writer) parameter(name string, n int64) {
	w.buf = strconv.AppendInt(append(w.buf, name...), n, 10)
}

// end ends the value of a field.
func (w *writer) end(name []byte) {
	w.fields = append(w.fields, Field{name, w.buf[w.begin:len(w.buf):len(w.buf)]})
	w.begin = len(w.buf)
}

// number writes a field whose value is an integer.
func (w *writer) number(name []byte, n int64) {
	w.parameter("", n)
	w.end(name)
}

func (w *writer) draft11(l *limit.Limit, quota, window, remaining, reset int64) {
	w.text(`"`)
	w.text(l.ID)
	w.parameter(`";q=`, quota)
	if window > 0 {
		w.parameter(";w=", window)
	} else {
		w.text(`;qu="concurrent-requests"`)
	}
	w.end(rateLimitPolicy)
	w.text(`"`)
	w.text(l.ID)
	w.parameter(`";r=`, remaining)
	if window > 0 {
		w.parameter(";t=", reset)
	}
	w.end(rateLimit)
	w.number(rateLimitLimit, quota)
	w.number(rateLimitRemaining, remaining)
	w.number(rateLimitReset, reset)
}

// near writes the id of a limit that is nearly used up.
func (w *writer) near(f Format, l *limit.Limit) {
	name := xRateLimitNear
	switch f {
	case Draft11:
		name = rateLimitNear
	case Off:
		return
	}
	w.text(`"`)
	w.text(l.ID)
	w.text(`"`)
	w.end(name)
}

// draft03 writes the quota, and the policy behind it.
func (w *writer) draft03(l *limit.Limit, quota, window int64) {
	w.parameter("", quota)
	if window > 0 {
		w.parameter(", ", quota)
		w.parameter(";w=", window)
		w.text(`;name="`)
		w.text(l.ID)
		w.text(`"`)
	}
	w.end(xRateLimitLimit)
}

// quotaOf returns the quota of a limit and its window in seconds, which is 0 for slots.
func quotaOf(l *limit.Limit) (quota, window int64) {
	if l.Params.Algorithm == bucket.AlgorithmConcurrency {
		return l.Params.Capacity, 0
	}
	return l.Rate.Count, max(1, int64(l.Window()/time.Second))
}

// Seconds returns milliseconds in seconds, rounded up, and 0 for less than none.
func Seconds(ms int64) int64 { return max(0, (ms+999)/1000) }
