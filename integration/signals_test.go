package integration

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSignalTwice: a signal that arrives twice, from a process that signals the group as well, ends a proxy as one
// does.
func TestSignalTwice(t *testing.T) {
	for _, pause := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond} {
		p := serve(t, "")
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		time.Sleep(pause) // the moment differs, not the result
		if err := p.stop(syscall.SIGINT); err != nil || !strings.Contains(p.output(), "msg=stopped") {
			t.Errorf("two signals within %s: %v\n%s", pause, err, p.output())
		}
	}
}
