package sdnotify

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// patience is the deadline of a wait in these tests.
const patience = 20 * time.Second

// manager is a socket of a service manager.
func manager(t *testing.T, name string) *net.UnixConn {
	t.Helper()
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := l.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return l
}

// receive returns the next state that a manager receives.
func receive(t *testing.T, l *net.UnixConn) string {
	t.Helper()
	b := make([]byte, 100)
	n, err := l.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

// environment returns a function that looks up pairs of a name and a value.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestNotify(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "notify"), "@limitgate-" + filepath.Base(t.TempDir()) + t.Name()} {
		l := manager(t, name)
		n := New(environment("NOTIFY_SOCKET", name), 1)
		for _, state := range []string{Ready, Stopping} {
			if err := n.Notify(state); err != nil {
				t.Fatal(err)
			}
			if got := receive(t, l); got != state {
				t.Errorf("%s received %q, want %q", name, got, state)
			}
		}
	}
}

func TestNotifyWithoutManager(t *testing.T) {
	if err := New(environment(), 1).Notify(Ready); err != nil {
		t.Errorf("without a socket: %v", err)
	}
	if err := New(environment("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone")), 1).Notify(Ready); err == nil {
		t.Error("a socket that does not exist is no error")
	}
}

func TestInterval(t *testing.T) {
	for name, row := range map[string]struct {
		micros, pid string
		want        time.Duration
	}{
		"30 s":            {"30000000", "", 10 * time.Second},
		"this process":    {"30000000", "7", 10 * time.Second},
		"another process": {"30000000", "8", 0},
		"none":            {"", "", 0},
		"zero":            {"0", "", 0},
		"no number":       {"soon", "", 0},
		"a microsecond":   {"1", "", minInterval},
		"centuries":       {"9223372036854775807", "", 20 * time.Minute},
	} {
		if n := New(environment("WATCHDOG_USEC", row.micros, "WATCHDOG_PID", row.pid), 7); n.interval != row.want {
			t.Errorf("%s: interval %s, want %s", name, n.interval, row.want)
		}
	}
}

// TestRun checks that watchdog messages come again and again, and that Run ends.
func TestRun(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	l := manager(t, name)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- New(environment("NOTIFY_SOCKET", name, "WATCHDOG_USEC", "30000"), 1).Run(ctx) }()
	for range 3 {
		if got := receive(t, l); got != alive {
			t.Errorf("received %q", got)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestRunWithoutWatchdog checks that Run lasts as long as its context, since the end of a part
// ends the program.
func TestRunWithoutWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		err := New(environment("WATCHDOG_USEC", "30000"), 1).Run(ctx)
		if lasted := time.Since(began); err != nil || lasted != time.Hour {
			t.Errorf("ended after %s: %v", lasted, err)
		}
	})
}
