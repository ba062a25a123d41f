package main

import (
	"strings"
	"testing"
)

// TestDenialText: a wait beyond the time at which the bucket is full again is marked as spread.
func TestDenialText(t *testing.T) {
	for reset, want := range map[int64]string{
		92517:  "denied by monthly: 0 of 100 left, retry after 1m42.274s, spread included (source store)",
		102274: "denied by monthly: 0 of 100 left, retry after 1m42.274s (source store)",
	} {
		d := decision{Limit: 100, RetryAfter: 102274, ResetAfter: reset, LimitID: "monthly", Source: "store"}
		if got := d.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
