package integration

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNarrowTerminal: a table that a terminal is too narrow for is printed as blocks, and as a table where it fits.
func TestNarrowTerminal(t *testing.T) {
	shown := func(width uint16) string {
		ours, theirs := openTerminal(t)
		if err := unix.IoctlSetWinsize(int(theirs.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: width}); err != nil {
			t.Fatal(err)
		}
		explain := exec.CommandContext(t.Context(), binaries.release, "limits", "explain", "../examples/limits.yaml", "acme", "POST /v1/payments", "203.0.113.7")
		explain.Stdout, explain.Stderr = theirs, os.Stderr
		if err := explain.Run(); err != nil {
			t.Fatal(err)
		}
		_ = theirs.Close()
		text, _ := io.ReadAll(ours) // ends with an error when the other end is closed
		return strings.ReplaceAll(string(text), "\r\n", "\n")
	}
	const width = 80
	narrow := shown(width)
	if !strings.Contains(narrow, "\n* limit: payments  level: tenant, op  rate: 600/m  algorithm: sliding_window\n    mode: enforce  ") {
		t.Errorf("on %d columns:\n%s", width, narrow)
	}
	for line := range strings.Lines(narrow) {
		if len(line) > width+1 {
			t.Errorf("a line of %d: %s", len(line), line)
		}
	}
	if wide := shown(400); !strings.Contains(wide, "\n   LIMIT     LEVEL ") {
		t.Errorf("on 400 columns:\n%s", wide)
	}
}
