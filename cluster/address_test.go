package cluster

import "testing"

// TestIsNode: an IP address leads to one node, and a name to any.
func TestIsNode(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1:6379": true, "[::1]:6379": true, "redis:6379": false, "127.0.0.1": false} {
		if got := IsNode(addr); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}
