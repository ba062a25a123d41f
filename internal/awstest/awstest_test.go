package awstest

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/limitgate/limitgate/internal/servers"
)

// TestEmulatorDiesAndComesBack: it answers, is gone when killed, is there again on the
// same port with nothing in it, and leaves nothing behind.
func TestEmulatorDiesAndComesBack(t *testing.T) {
	var pid int
	before := goleak.IgnoreCurrent()
	t.Run("run", func(t *testing.T) {
		a := Start(t)
		addr := a.Addr
		if arn := a.Topic(t, "limits"); !strings.HasSuffix(arn, ":limits") || !strings.Contains(arn, region) {
			t.Errorf("a topic has the ARN %s", arn)
		}
		if err := a.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(a.PID(), 0); err != syscall.ESRCH {
			t.Errorf("after Kill there is a process %d: %v", a.PID(), err)
		}
		if err := a.Restart(); err != nil {
			t.Fatal(err)
		}
		pid = a.PID()
		if a.Addr != addr {
			t.Errorf("it moved from %s to %s", addr, a.Addr)
		}
		if got := a.Queues(t); len(got) != 0 {
			t.Errorf("a new emulator has queues: %v", got)
		}
		if env := a.Environment(); !slices.Contains(env, "AWS_ENDPOINT_URL=http://"+addr) {
			t.Errorf("the environment leads elsewhere: %v", env)
		}
	})
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("after the test there is a process %d: %v", pid, err)
	}
	goleak.VerifyNone(t, before)
}

// TestWithoutAnEmulator: whoever has none is told how to get it.
func TestWithoutAnEmulator(t *testing.T) {
	t.Setenv(servers.MotoVariable, os.DevNull)
	_, err := servers.StartMoto(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "pip install 'moto[server]==5.2.1'") {
		t.Errorf("got %v", err)
	}
}
