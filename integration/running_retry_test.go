package integration

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestRunningRetry: a command that asks repeatedly goes on when the limitgate restarts, with a line for the first error and one
// for the next answer. Where the first question has no answer the command ends.
func TestRunningRetry(t *testing.T) {
	limits := writeLimits(t, limitOf("100/h"))
	for _, command := range []string{"stats", "top", "shards"} {
		t.Run(command, func(t *testing.T) {
			addr := "127.0.0.1:" + freePorts(t, 1)[0]
			if _, errs, code := run(t, nil, command, "--addr", addr, "--every", "10ms"); code != 1 || !strings.Contains(errs, "is limitgate serve running at "+addr) {
				t.Errorf("before the first answer: exit %d, %s", code, errs)
			}
			p := serve(t, limits, "--listen", addr)
			cmd := exec.CommandContext(t.Context(), binaries.release, command, "--addr", addr, "--every", "10ms")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			errs, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			answers, complaints := bufio.NewScanner(out), bufio.NewScanner(errs)
			if !answers.Scan() {
				t.Fatal("no answer")
			}
			read := make(chan struct{})
			go func() {
				_, _ = io.Copy(io.Discard, out)
				close(read)
			}()
			_ = p.stop(syscall.SIGTERM)
			expectLine(t, complaints, "limitgate "+command+": no answer from "+addr+": ", "; retrying")
			serve(t, limits, "--listen", addr)
			expectLine(t, complaints, "limitgate "+command+": there are answers from "+addr+" again", "")
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			for complaints.Scan() {
				t.Errorf("one line more: %s", complaints.Text())
			}
			<-read
			if err := cmd.Wait(); err != nil {
				t.Errorf("interrupted: %v", err)
			}
		})
	}
}

// expectLine reads a line, which begins and ends with texts and has no advice about TLS.
func expectLine(t *testing.T, lines *bufio.Scanner, begin, end string) {
	t.Helper()
	if !lines.Scan() {
		t.Fatalf("no line %s", begin)
	}
	if text := lines.Text(); !strings.HasPrefix(text, begin) || !strings.HasSuffix(text, end) || strings.Contains(text, "TLS") {
		t.Errorf("got %s, want %s ... %s", text, begin, end)
	}
}
