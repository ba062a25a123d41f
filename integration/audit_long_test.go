//go:build long

package integration

import "testing"

// TestLongAudit audits 1,000 changes while the control plane is killed five times.
func TestLongAudit(t *testing.T) { exactAudit(t, 1000, 5) }
