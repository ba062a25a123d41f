package integration

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// buildDemo builds the demo's traffic, and returns its path.
func buildDemo(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "demo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../examples/demo").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// TestDemo runs the demo's traffic for a second against a limitgate, and against a Redis, which it must
// refuse.
func TestDemo(t *testing.T) {
	t.Parallel()
	program := buildDemo(t)
	p := serve(t, "../examples/limits.yaml")
	out, err := exec.CommandContext(t.Context(), program, "--addr", p.addr, "--for", "1s").CombinedOutput()
	if err != nil || !strings.Contains(string(out), " 0 without an answer.") {
		t.Errorf("the demo: %v\n%s", err, out)
	}
	if denials, err := p.client().Do(t.Context(), "RL.DENIED", 100).Slice(); err != nil || len(denials) == 0 {
		t.Errorf("denials: %v, %v", denials, err)
	}
	if out, err := exec.CommandContext(t.Context(), program, "--addr", redistest.Start(t).Addr, "--for", "1s").CombinedOutput(); err == nil || !strings.Contains(string(out), "is no limitgate") {
		t.Errorf("against a Redis: %v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), program, "--addr", "127.0.0.1:1").CombinedOutput(); err == nil || !strings.HasPrefix(string(out), "demo: no limitgate answers at 127.0.0.1:1 (make run starts one; LIMITGATE_LISTEN=HOST:PORT make demo-traffic asks another): ") {
		t.Errorf("against nothing: %v\n%s", err, out)
	}
}
