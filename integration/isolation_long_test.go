//go:build long

package integration

import (
	"testing"

	"github.com/limitgate/limitgate/internal/isolation"
)

// TestLongIsolation is TestUserIsolation with 10^5 commands, some two minutes.
func TestLongIsolation(t *testing.T) {
	t.Run("all of each reply", func(t *testing.T) { newNeighbours(t, isolation.Users, false).check(t, 100_000) })
	t.Run("with a deny cache", func(t *testing.T) { newNeighbours(t, isolation.Users, true).check(t, 20_000) })
}
