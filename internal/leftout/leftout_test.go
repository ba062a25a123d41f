package leftout

import (
	"fmt"
	"testing"
)

// skips is a test that records the reason of its skip.
type skips struct {
	testing.TB
	reason string
}

// Skipf records the reason.
func (s *skips) Skipf(format string, values ...any) { s.reason = fmt.Sprintf(format, values...) }

// TestWithoutAWS checks that tests are left out for a given reason only.
func TestWithoutAWS(t *testing.T) {
	for reason, want := range map[string]string{"": "", "no pip": "left out: tests of AWS (no pip)"} {
		t.Setenv(AWSVariable, reason)
		on := &skips{TB: t}
		if WithoutAWS(on); on.reason != want {
			t.Errorf("for %q a test is skipped for %q", reason, on.reason)
		}
	}
}
