package httpfields_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/internal/httpfields"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// perMinute, monthly and slots are limits with a burst, a calendar and no rate.
var (
	perMinute = &limit.Limit{ID: "per-minute", Rate: bucket.Rate{Count: 60, Period: 60e6}, Params: bucket.Params{Algorithm: bucket.AlgorithmTokenBucket, Capacity: 100}}
	monthly   = &limit.Limit{ID: "monthly", Rate: bucket.Rate{Count: 1000, Calendar: bucket.CalendarMonth}, Params: bucket.Params{Algorithm: bucket.AlgorithmFixedWindow, Capacity: 1000}}
	slots     = &limit.Limit{ID: "slots", Params: bucket.Params{Algorithm: bucket.AlgorithmConcurrency, Capacity: 5}}
	ban       = &limit.Limit{ID: "ban", Action: limit.ActionDeny}
)

var now = time.Unix(1_700_000_000, 0)

// TestFields has the fields of each format, word for word.
func TestFields(t *testing.T) {
	for _, row := range []struct {
		name     string
		format   httpfields.Format
		decision limit.Decision
		want     string
	}{
		{
			"admitted, more left than the quota", httpfields.Draft11,
			limit.Decision{Allowed: true, Binding: perMinute, Remaining: 99, ResetAfter: 1001},
			`RateLimit-Policy: "per-minute";q=60;w=60|RateLimit: "per-minute";r=60;t=2|RateLimit-Limit: 60|RateLimit-Remaining: 60|RateLimit-Reset: 2`,
		},
		{
			"denied", httpfields.Draft11,
			limit.Decision{Binding: perMinute, RetryAfter: 2000, ResetAfter: 90_000},
			`RateLimit-Policy: "per-minute";q=60;w=60|RateLimit: "per-minute";r=0;t=2|RateLimit-Limit: 60|RateLimit-Remaining: 0|RateLimit-Reset: 2|Retry-After: 2`,
		},
		{
			"never", httpfields.Draft11,
			limit.Decision{Binding: perMinute, Remaining: 3, RetryAfter: bucket.Never, ResetAfter: 5000},
			`RateLimit-Policy: "per-minute";q=60;w=60|RateLimit: "per-minute";r=3;t=5|RateLimit-Limit: 60|RateLimit-Remaining: 3|RateLimit-Reset: 5`,
		},
		{
			"slots", httpfields.Draft11,
			limit.Decision{Binding: slots, RetryAfter: 1, ResetAfter: 60_000},
			`RateLimit-Policy: "slots";q=5;qu="concurrent-requests"|RateLimit: "slots";r=0|RateLimit-Limit: 5|RateLimit-Remaining: 0|RateLimit-Reset: 1|Retry-After: 1`,
		},
		{
			"a month", httpfields.Draft03,
			limit.Decision{Allowed: true, Binding: monthly, Remaining: 7, ResetAfter: 86_400_000},
			`X-RateLimit-Limit: 1000, 1000;w=2592000;name="monthly"|X-RateLimit-Remaining: 7|X-RateLimit-Reset: 86400`,
		},
		{"slots as Envoy", httpfields.Draft03, limit.Decision{Allowed: true, Binding: slots, Remaining: 4}, `X-RateLimit-Limit: 5|X-RateLimit-Remaining: 4|X-RateLimit-Reset: 0`},
		{
			"since the epoch", httpfields.Legacy,
			limit.Decision{Binding: perMinute, RetryAfter: 1500, ResetAfter: 90_000},
			`X-RateLimit-Limit: 60|X-RateLimit-Remaining: 0|X-RateLimit-Reset: 1700000002|Retry-After: 2`,
		},
		{"off", httpfields.Off, limit.Decision{Binding: perMinute, RetryAfter: 1}, `Retry-After: 1`},
		{"no limit", httpfields.Draft11, limit.Decision{Allowed: true, Limit: -1, Remaining: -1}, ``},
		{"a ban", httpfields.Draft11, limit.Decision{Binding: ban, RetryAfter: bucket.Never}, ``},
	} {
		var all []string
		for _, f := range row.format.Append(nil, nil, &row.decision, func() time.Time { return now }) {
			all = append(all, fmt.Sprintf("%s: %s", f.Name, f.Value))
		}
		if got := strings.Join(all, "|"); got != row.want {
			t.Errorf("%s: %s\nwant %s", row.name, got, row.want)
		}
	}
}

// TestStructured: every value is a list of RFC 9651, fits into the room that is given, and its name is
// among those that browsers are let see.
func TestStructured(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := rapid.SampledFrom([]*limit.Limit{perMinute, monthly, slots}).Draw(rt, "limit")
		d := limit.Decision{
			Allowed: rapid.Bool().Draw(rt, "allowed"), Binding: l, Remaining: rapid.Int64Range(0, 1<<40).Draw(rt, "remaining"),
			RetryAfter: rapid.Int64Range(-1, 1<<40).Draw(rt, "retry after"), ResetAfter: rapid.Int64Range(0, 1<<40).Draw(rt, "reset after"),
		}
		for _, name := range httpfields.FormatNames() {
			format, ok := httpfields.ParseFormat(name)
			if !ok || format.String() != name {
				rt.Fatalf("%s is %v", name, format)
			}
			fields := format.Append(nil, nil, &d, func() time.Time { return now })
			length := 0
			for _, f := range fields {
				length += len(f.Value)
				if list, err := httpsfv.UnmarshalList([]string{string(f.Value)}); err != nil || len(list) == 0 {
					rt.Errorf("%s: %s: %v", f.Name, f.Value, err)
				}
				if !strings.Contains(", "+format.Exposed()+",", ", "+string(f.Name)+",") {
					rt.Errorf("%s hides %s", format.Exposed(), f.Name)
				}
			}
			if len(fields) > httpfields.MaxFields || length > httpfields.MaxBytes {
				rt.Errorf("%d fields of %d bytes", len(fields), length)
			}
		}
	})
}
