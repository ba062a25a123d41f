package limit

import "testing"

// TestHashSlot has the examples of the Redis Cluster specification.
func TestHashSlot(t *testing.T) {
	for key, want := range map[string]uint16{
		"": 0, "123456789": 12739, "foo": 12182, "{user1000}.following": 3443, "{user1000}.followers": 3443,
		"foo{}{bar}": 8363, "foo{{bar}}zap": 4015, "foo{bar}{zap}": 5061,
	} {
		if got := HashSlot([]byte(key)); got != want {
			t.Errorf("slot of %q: got %d, want %d", key, got, want)
		}
	}
}
