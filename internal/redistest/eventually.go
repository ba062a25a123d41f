package redistest

import (
	"testing"
	"time"
)

// Eventually polls ok, and fails if it is not true within some time.
func Eventually(tb testing.TB, within time.Duration, what string, ok func() bool) {
	tb.Helper()
	late := time.NewTimer(within)
	defer late.Stop()
	tick := time.NewTicker(max(5*time.Millisecond, within/1000))
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-late.C:
			tb.Fatalf("%s: not within %s", what, within)
		}
	}
}
