package config

import "testing"

// TestSamePort: only addresses that cannot be listened on at once clash.
func TestSamePort(t *testing.T) {
	for _, row := range []struct {
		a, b string
		same bool
	}{
		{"127.0.0.1:1", "127.0.0.1:1", true},
		{"127.0.0.1:1", "localhost:1", true},
		{"127.0.0.1:1", "0.0.0.0:1", true},
		{"127.0.0.1:1", "[::]:1", true},
		{"[::1]:1", ":1", true},
		{":1", "0.0.0.0:1", true},
		{"10.0.0.1:1", "0.0.0.0:01", true},
		{"a.example:1", "0.0.0.0:1", true},
		{"[::ffff:127.0.0.1]:1", "127.0.0.1:1", true},
		{"a.example:1", "A.example:1", true},
		{"a.example:1", "127.0.0.1:1", false},
		{"[::1]:1", "0.0.0.0:1", false},
		{"127.0.0.1:1", "127.0.0.2:1", false},
		{"127.0.0.1:1", "127.0.0.1:2", false},
		{"127.0.0.1:0", "0.0.0.0:0", false},
		{"unix:/a", "unix:/a", true},
		{"unix:/a", "unix:/b", false},
		{"unix:/a", "127.0.0.1:1", false},
		{"", "", false},
		{"nonsense", "nonsense", false},
	} {
		if samePort(row.a, row.b) != "" != row.same || samePort(row.b, row.a) != "" != row.same {
			t.Errorf("%s and %s: %q", row.a, row.b, samePort(row.a, row.b))
		}
	}
}

// TestOwnAddr: a node is the proxy itself only if it is on this machine, as far as the texts show.
func TestOwnAddr(t *testing.T) {
	for _, row := range []struct {
		listener, node string
		own            bool
	}{
		{"127.0.0.1:1", "127.0.0.1:1", true},
		{"127.0.0.1:1", "localhost:1", true},
		{":1", "localhost:1", true},
		{"0.0.0.0:1", "127.0.0.1:1", true},
		{"[::]:1", "[::1]:1", true},
		{"10.0.0.1:1", "10.0.0.1:1", true},
		{"0.0.0.0:1", "10.0.0.1:1", false},
		{":1", "redis.internal:1", false},
		{"a.example:1", "a.example:1", false},
		{"10.0.0.1:1", "127.0.0.1:1", false},
		{"127.0.0.1:1", "127.0.0.1:2", false},
		{"127.0.0.1:0", "127.0.0.1:0", false},
		{"unix:/a", "127.0.0.1:1", false},
		{"", "127.0.0.1:1", false},
	} {
		if ownAddr(row.listener, row.node) != row.own {
			t.Errorf("%s and %s", row.listener, row.node)
		}
	}
}
