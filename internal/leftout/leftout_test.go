package leftout

import (
	"fmt"
	"testing"
)

// skips is a test that notes for what reason it is skipped.
type skips struct {
	testing.TB
	reason string
}

// Skipf notes the reason.
func (s *skips) Skipf(format string, values ...any) { s.reason = fmt.Sprintf(format, values...) }

// TestWithoutAWS: tests are left out for a reason that is given, and for no other.
func TestWithoutAWS(t *testing.T) {
	for reason, want := range map[string]string{"": "", "no pip": "left out: tests of AWS (no pip)"} {
		t.Setenv(AWSVariable, reason)
		on := &skips{TB: t}
		if WithoutAWS(on); on.reason != want {
			t.Errorf("for %q a test is skipped for %q", reason, on.reason)
		}
	}
}
