// Package leftout leaves out tests whose dependency the machine lacks. It is the one
// place that may skip a test: internal/testreport counts the tests left out, and prints
// the reason.
package leftout

import (
	"os"
	"testing"
)

// AWSVariable names the variable with the reason why there is no emulator of AWS.
const AWSVariable = "LIMITGATE_WITHOUT_AWS"

// WithoutAWS leaves a test of AWS out if AWSVariable gives a reason. Package awstest
// calls it for tests that start one.
func WithoutAWS(tb testing.TB) {
	tb.Helper()
	if reason := os.Getenv(AWSVariable); reason != "" {
		tb.Skipf("left out: tests of AWS (%s)", reason)
	}
}
