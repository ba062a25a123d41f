package integration

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a terminal: output to the programs' end is read from
// the other one.
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

// TestProgressOfPush: a push at a terminal shows its progress, and one into a log does
// not.
func TestProgressOfPush(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const tenants = 30
	ours, theirs := openTerminal(t)
	push := s.command("limits", "push", "--yes", "--actor", "ann", crowdOfTenants(t, tenants, "free"), tableURL)
	push.Stderr = theirs
	if err := push.Run(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	shown, _ := io.ReadAll(ours) // ends with an error when the other end is closed
	const items = tenants + 4
	for _, part := range []string{fmt.Sprintf("1 of %d items", items), fmt.Sprintf("[########################################] %d of %d items\r\n", items, items)} {
		if !bytes.Contains(shown, []byte(part)) {
			t.Errorf("%q is not in %q", part, shown)
		}
	}
	stdout, stderr, code := s.limits("push", "--yes", "--actor", "ann", crowdOfTenants(t, tenants, "gold"), tableURL)
	if code != 0 || stderr != "" || bytes.ContainsAny([]byte(stdout), "\r\x1b") {
		t.Errorf("without a terminal: %d\n%q\n%q", code, stdout, stderr)
	}
}
