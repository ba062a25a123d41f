package integration

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestStartAfterAVeto: a proxy that starts while no control plane runs does not try a
// revision that another proxy has vetoed.
func TestStartAfterAVeto(t *testing.T) {
	t.Parallel()
	s, _ := tried(t)
	flags := []string{"--cells-table", "cells", "--rollout-gate", gateName}
	p := s.serve(filepath.Join(t.TempDir(), "snapshot"), flags...)
	enforce(t, "beta", 200, p)
	if err := p.client().Do(t.Context(), "RL.CONFIG", "ABORT").Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has written a veto", func() bool {
		stdout, _, _ := s.rollout("status", "--cells", "cells", tableURL)
		return strings.Contains(stdout, "revision 1 was taken back")
	})
	enforce(t, "beta", 100, p)
	enforce(t, "beta", 100, s.serve(filepath.Join(t.TempDir(), "snapshot"), flags...))
}
