package bench

import (
	"slices"
	"testing"
)

// TestDivideCores checks that all cores are given to one process each, from six on.
func TestDivideCores(t *testing.T) {
	for n := range 65 {
		var all []int
		for i := range n {
			all = append(all, 3*i)
		}
		s := divideCores(all)
		if n < fewestCores {
			if len(s.store)+len(s.client)+len(s.proxy) > 0 {
				t.Errorf("%d cores are divided: %+v", n, s)
			}
			continue
		}
		if got := slices.Concat(s.store, s.client, s.proxy); !slices.Equal(got, all) {
			t.Errorf("%d cores: %v, want each once", n, got)
		}
		if len(s.store) != 1 || len(s.client) < 2 || len(s.proxy) < len(s.client) {
			t.Errorf("%d cores are divided into %d, %d and %d", n, len(s.store), len(s.client), len(s.proxy))
		}
	}
}
