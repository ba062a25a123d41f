package doctor

import (
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestConfigWarnings checks the warning for a store that evicts keys, and that there is none for a
// store that does not.
func TestConfigWarnings(t *testing.T) {
	node := redistest.Start(t)
	s := openStore(t, node.Addr)
	if warnings := ConfigWarnings(t.Context(), s); len(warnings) != 0 {
		t.Errorf("warnings for a store that keeps everything: %v", warnings)
	}
	node.CLI(t, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	if warnings := ConfigWarnings(t.Context(), s); len(warnings) != 1 || !strings.Contains(warnings[0], "allkeys-lru") {
		t.Errorf("warnings for a store that evicts: %v", warnings)
	}
}
