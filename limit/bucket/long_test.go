//go:build long

package bucket

import "testing"

// TestLongNoDrift makes a thousand million decisions at each rate.
func TestLongNoDrift(t *testing.T) {
	for _, rate := range []string{"3/s", "7/s", "999983/d", "2999999/s", "3000000/s"} {
		t.Run(rate, func(t *testing.T) {
			t.Parallel()
			noDrift(t, rate, 1_000_000_000)
		})
	}
}
