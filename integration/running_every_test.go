package integration

import (
	"bufio"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestRunningEvery: with --every a command asks until it is interrupted, which is no failure.
func TestRunningEvery(t *testing.T) {
	p := serve(t, writeLimits(t, limitOf("100/h")))
	cmd := exec.CommandContext(t.Context(), binaries.release, "top", "--addr", p.addr, "--every", "10ms")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for seen := 0; seen < 3 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "operations:") {
			seen++
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // so that it can write what it has begun
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("interrupted: %v", err)
	}
}
