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
	p := serve(t, "../examples/limits.yaml")
	shown := func(width uint16, command ...string) string {
		ours, theirs := openTerminal(t)
		if err := unix.IoctlSetWinsize(int(theirs.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: width}); err != nil {
			t.Fatal(err)
		}
		explain := exec.CommandContext(t.Context(), binaries.release, append(command, "acme", "POST /v1/payments", "203.0.113.7")...)
		explain.Stdout, explain.Stderr = theirs, os.Stderr
		if err := explain.Run(); err != nil {
			t.Fatal(err)
		}
		_ = theirs.Close()
		text, _ := io.ReadAll(ours) // ends with an error when the other end is closed
		return strings.ReplaceAll(string(text), "\r\n", "\n")
	}
	const width = 80
	for _, command := range [][]string{{"limits", "explain", "../examples/limits.yaml"}, {"explain", "--addr", p.addr}} {
		narrow := shown(width, command...)
		if !strings.Contains(narrow, "\n* limit: payments  level: tenant, op  rate: 600/m  algorithm: sliding_window\n    mode: enforce  ") {
			t.Errorf("%s on %d columns:\n%s", command, width, narrow)
		}
		for line := range strings.Lines(narrow) {
			if len(line) > width+1 {
				t.Errorf("%s: a line of %d: %s", command, len(line), line)
			}
		}
		if wide := shown(400, command...); !strings.Contains(wide, "\n   LIMIT     LEVEL ") {
			t.Errorf("%s on 400 columns:\n%s", command, wide)
		}
	}
}
