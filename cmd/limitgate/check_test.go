package main

import (
	"testing"
	"time"
)

// TestDenialText: the part of a wait that spreads callers is named where it is known.
func TestDenialText(t *testing.T) {
	for spread, want := range map[time.Duration]string{
		0:                       "denied by monthly: 0 of 100 left, retry after 1m42.274s (source store)",
		9757 * time.Millisecond: "denied by monthly: 0 of 100 left, retry after 1m42.274s, 9.757s of it to spread callers (source store)",
	} {
		d := decision{Limit: 100, RetryAfter: 102274, ResetAfter: 92517, LimitID: "monthly", Source: "store", spread: spread}
		if got := d.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
