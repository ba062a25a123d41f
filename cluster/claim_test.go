package cluster

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestClaim: the first value stays for as long as it is claimed, and others get it.
func TestClaim(t *testing.T) {
	node := redistest.Start(t)
	s := open(t, node.Addr)
	for _, step := range []struct{ value, want string }{{"a", "a"}, {"b", "a"}, {"a", "a"}, {"b", "a"}} {
		if got, err := s.Claim(t.Context(), "lg:claimed", step.value, time.Minute); err != nil || got != step.want {
			t.Errorf("claimed %s: %q, %v, want %q", step.value, got, err, step.want)
		}
	}
	if n := redistest.AssertAllKeysExpire(t, node); n == 0 {
		t.Error("there is no key")
	}
	node.CLI(t, "DEL", "lg:claimed")
	if got, err := s.Claim(t.Context(), "lg:claimed", "b", time.Minute); err != nil || got != "b" {
		t.Errorf("after the end: %q, %v", got, err)
	}
	node.Kill()
	if got, err := s.Claim(t.Context(), "lg:claimed", "b", time.Minute); err == nil {
		t.Errorf("of a node that is away: %q", got)
	}
}
