// Package leftout leaves out tests for want of something that a machine may lack. It is the
// one place that may skip a test: internal/testreport counts what is left out, and prints
// the reason.
package leftout

import (
	"os"
	"testing"
)

// AWSVariable names the variable with the reason for which there is no emulator of AWS.
const AWSVariable = "LIMITGATE_WITHOUT_AWS"

// WithoutAWS leaves a test of AWS out where there is a reason for which there is no
// emulator. Package awstest calls it for tests that start one.
func WithoutAWS(tb testing.TB) {
	tb.Helper()
	if reason := os.Getenv(AWSVariable); reason != "" {
		tb.Skipf("left out: tests of AWS (%s)", reason)
	}
}
