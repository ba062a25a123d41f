package servers

import (
	"os/exec"
	"syscall"
	"testing"
)

func TestReaperKillsWhatIsLeftWhenItsProcessIsGone(t *testing.T) {
	var r reaper
	left, forgotten, leftToo := startSleeper(t), startSleeper(t), startSleeper(t)
	for _, sleeper := range []*exec.Cmd{left, forgotten, leftToo} {
		if err := r.watch(sleeper.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.forget(forgotten.Process.Pid); err != nil {
		t.Fatal(err)
	}
	// The kernel does the same to the pipe of a process that dies.
	if err := r.input.Close(); err != nil {
		t.Fatal(err)
	}
	for _, sleeper := range []*exec.Cmd{left, leftToo} {
		if got := endingSignal(t, sleeper); got != syscall.SIGKILL {
			t.Errorf("watched process ended by %v, want SIGKILL", got)
		}
	}
	// The reaper has finished with its list by now, or the two would be alive.
	if err := forgotten.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := endingSignal(t, forgotten); got != syscall.SIGTERM {
		t.Errorf("forgotten process ended by %v, want the test's SIGTERM", got)
	}
}

func startSleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	command := exec.Command("sleep", "600")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command
}

func endingSignal(t *testing.T, command *exec.Cmd) syscall.Signal {
	t.Helper()
	state, err := command.Process.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return state.Sys().(syscall.WaitStatus).Signal()
}
