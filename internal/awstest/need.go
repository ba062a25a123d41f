package awstest

import (
	"os"
	"testing"
)

// WithoutVariable names the variable with the reason for which there is no emulator.
const WithoutVariable = "LIMITGATE_WITHOUT_AWS"

// Need leaves a test out where there is a reason for which there is no emulator. It is the
// one reason that a test may be skipped for: internal/testreport counts these tests, and
// prints the reason. Start has it done, other tests of AWS call it first.
func Need(tb testing.TB) {
	tb.Helper()
	if reason := os.Getenv(WithoutVariable); reason != "" {
		tb.Skipf("left out: tests of AWS (%s)", reason)
	}
}
