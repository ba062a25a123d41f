package cluster

import (
	"math"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestAdmitted checks that the admitted units of the proxies of a cell are added up for
// each window, and returned once, the largest first.
func TestAdmitted(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	for name, addr := range map[string]string{"single": redistest.Start(t).Addr, "cluster": c.Nodes[0].Addr} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stores := []*Store{open(t, addr), open(t, addr), open(t, addr)}
			for i, s := range stores {
				share := float64(i+1) / 8
				if err := s.AddAdmitted(t.Context(), 7, map[string]float64{"a": share, "b": share / 2, "c": .01}); err != nil {
					t.Fatal(err)
				}
			}
			if err := stores[0].AddAdmitted(t.Context(), 8, map[string]float64{"a": 5}); err != nil {
				t.Fatal(err)
			}
			returned := 0
			for _, s := range stores {
				shares, ok, err := s.Admitted(t.Context(), 7, 2)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					continue
				}
				returned++
				if len(shares) != 2 || math.Abs(shares["a"]-.75) > 1e-9 || math.Abs(shares["b"]-.375) > 1e-9 {
					t.Errorf("got %v", shares)
				}
			}
			if returned != 1 {
				t.Errorf("returned %d times", returned)
			}
			if shares, ok, err := stores[1].Admitted(t.Context(), 9, 2); err != nil || !ok || len(shares) != 0 {
				t.Errorf("for a window without admissions: %v, %v, %v", shares, ok, err)
			}
		})
	}
	redistest.AssertAllKeysExpire(t, c.Nodes...)
}
