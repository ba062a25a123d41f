//go:build long

package integration

import "testing"

// TestLongAudit writes down 1,000 changes while the control plane dies five times.
func TestLongAudit(t *testing.T) { exactAudit(t, 1000, 5) }
