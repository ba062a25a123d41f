package proxy

import "testing"

// TestBoundConns: a proxy keeps descriptors for itself, and half of them if there are
// few.
func TestBoundConns(t *testing.T) {
	for _, tc := range []struct {
		maxConns    int
		descriptors uint64
		want        int
	}{
		{10_000, 1 << 20, 10_000},
		{10_000, 1<<64 - 1, 10_000},
		{10_000, 4096, 4096 - ownDescriptors},
		{10_000, 512, 512 - ownDescriptors},
		{10_000, 100, 50},
		{100, 512, 100},
		{10_000, 0, 1},
	} {
		if got := boundConns(tc.maxConns, tc.descriptors); got != tc.want {
			t.Errorf("%d connections with %d descriptors: %d, want %d", tc.maxConns, tc.descriptors, got, tc.want)
		}
	}
}
