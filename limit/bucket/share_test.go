package bucket

import "testing"

// TestShare compares an instance's share with the whole: n of them admit as many units as
// the limit, or one unit each.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		p        Params
		n        int64
		capacity int64
	}{
		{Params{AlgorithmTokenBucket, 100, 1e6, 200}, 4, 50},
		{Params{AlgorithmSlidingWindow, 600, 60e6, 600}, 7, 85},
		{Params{AlgorithmFixedWindow, 3, 86400e6, 3}, 5, 1},
		{Params{AlgorithmTokenBucket, 1, MaxPeriod, 35}, 100, 1},
	} {
		share := c.p.Share(c.n)
		if share.Capacity != c.capacity || share.Algorithm != AlgorithmTokenBucket {
			t.Errorf("share of %+v for %d: %+v", c.p, c.n, share)
		}
		// count/period of the share times n is count/period of the limit.
		if share.Count*c.n*c.p.Period != c.p.Count*share.Period {
			t.Errorf("%d shares of %d/%d us are %d/%d us", c.n, c.p.Count, c.p.Period, share.Count, share.Period)
		}
	}
}
