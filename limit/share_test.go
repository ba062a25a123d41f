package limit_test

import (
	"testing"

	"github.com/limitgate/limitgate/internal/storetest"
)

// TestDescribeOnError checks that the description has the units that may be admitted
// while the store is unavailable, and whether they exceed the limit.
func TestDescribeOnError(t *testing.T) {
	set := storetest.Compile(t,
		storetest.Spec{ID: "wide", By: []string{"tenant"}, Rate: "100/s", Burst: "200"},
		storetest.Spec{ID: "narrow", By: []string{"tenant"}, Rate: "3/h"},
		storetest.Spec{ID: "closed", By: []string{"tenant"}, Rate: "3/h", OnError: "closed"},
	)
	want := map[string]map[int64]string{
		"wide":   {1: "open", 4: "open: each of 4 instances admits 50 units at once and 1/4 of the rate"},
		"narrow": {10: "open: each of 10 instances admits 1 units at once and 1/10 of the rate, together up to 7 units beyond the limit"},
		"closed": {10: "closed"},
	}
	for _, l := range set.Limits {
		for n, text := range want[l.ID] {
			if got := l.DescribeOnError(n); got != text {
				t.Errorf("%s, %d instances: %q, want %q", l.ID, n, got, text)
			}
		}
	}
}
