//go:build long

package limit

import (
	"math/big"
	"testing"
)

// TestLongNoDrift makes a thousand million decisions at each rate: the admitted
// units equal the burst and the exact refill, within one.
func TestLongNoDrift(t *testing.T) {
	for _, rate := range []string{"3/s", "7/s", "999983/d", "3000000/s"} {
		t.Run(rate, func(t *testing.T) {
			t.Parallel()
			p := tokenParams(t, rate, 5)
			now, admitted := testEpoch, int64(0)
			var s State
			step := max(1, p.Period/p.Count/3)
			cost := max(1, p.Count/p.Period)
			uneven := min(1, step-1) // a bucket that refills within a step must not overflow
			for i := range int64(1_000_000_000) {
				if v, _, _ := Decide(&p, nil, &s, now, cost); v.Allowed {
					admitted += cost
				}
				now += step + i%2*uneven
			}
			// Whatever is left is asked for at the end.
			for {
				v, _, _ := Decide(&p, nil, &s, now, 1)
				if !v.Allowed {
					break
				}
				admitted++
			}
			refilled := new(big.Int).Mul(big.NewInt(now-testEpoch), big.NewInt(p.Count))
			want := refilled.Div(refilled, big.NewInt(p.Period)).Int64() + 5
			if admitted < want-1 || admitted > want {
				t.Errorf("admitted %d units, the exact number is %d", admitted, want)
			}
		})
	}
}
