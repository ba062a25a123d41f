package proxy

import (
	"strings"
	"testing"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/redistest"
)

// TestWhyWithout: a start without a store says whether the store is full or away.
func TestWhyWithout(t *testing.T) {
	full := redistest.Start(t)
	full.CLI(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	full.CLI(t, "CONFIG", "SET", "maxmemory", "1")
	for addr, want := range map[string]string{full.Addr: "it has no memory left: ", "127.0.0.1:1": "it cannot be reached"} {
		s, err := cluster.Open(t.Context(), cluster.Options{Addrs: []string{addr}, StartWithout: true, Secret: []byte(strings.Repeat("s", 32))})
		if err != nil {
			t.Fatal(err)
		}
		if got := whyWithout(s.Ping(t.Context())); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", addr, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
