package servers

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	startTimeout = 30 * time.Second
	pollInterval = 5 * time.Millisecond
)

// errPortTaken means that another process listened on the chosen port first.
var errPortTaken = errors.New("port is taken")

// program is a server that can be started.
type program struct {
	name  string
	path  string
	ready string // its log line when it serves; empty if its caller waits for it

	environment []string // added to that of this process
}

// process is one run of a program.
type process struct {
	program
	command *exec.Cmd
	pid     int
	logPath string
	ended   bool
}

// startProcess runs a program in folder and returns when it is ready. Each run writes a
// log of its own.
func startProcess(what program, folder string, run int, args []string) (*process, error) {
	logPath := filepath.Join(folder, "run-"+strconv.Itoa(run)+".log")
	log, err := os.Create(logPath)
	if err != nil {
		return nil, fmt.Errorf("create server log: %w", err)
	}
	defer func() { _ = log.Close() }()

	command := exec.Command(what.path, args...)
	command.Dir = folder
	command.Env = append(command.Environ(), what.environment...)
	// A file, not a pipe: a reader of this test's output must not have to wait for the
	// server to close it.
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", what.name, err)
	}
	p := &process{program: what, command: command, pid: command.Process.Pid, logPath: logPath}
	if err := children.watch(p.pid); err != nil {
		return nil, errors.Join(err, p.kill())
	}
	if err := p.awaitReady(); err != nil {
		return nil, errors.Join(err, p.kill())
	}
	return p, nil
}

// awaitReady waits for the server's log line that it serves. On the port another process
// could answer, or the server could refuse for lack of a password.
func (p *process) awaitReady() error {
	deadline := time.Now().Add(startTimeout)
	for {
		ended := p.hasEnded()
		log, err := os.ReadFile(p.logPath)
		if err != nil {
			return fmt.Errorf("read server log: %w", err)
		}
		switch {
		case bytes.Contains(log, []byte(p.ready)):
			return nil
		case bytes.Contains(log, []byte("Address already in use")), bytes.Contains(log, []byte("Failed to bind to")):
			return errPortTaken
		case ended:
			return fmt.Errorf("%s ended at once, its log is:\n%s", p.name, log)
		case time.Now().After(deadline):
			return fmt.Errorf("%s is not ready after %v, its log is:\n%s", p.name, startTimeout, log)
		}
		time.Sleep(pollInterval)
	}
}

// hasEnded reports whether the server ended by itself. It does not wait, so that no
// goroutine has to wait for each server: tests for leaked goroutines would find it.
func (p *process) hasEnded() bool {
	if p.ended {
		return true
	}
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(p.pid, &status, syscall.WNOHANG, nil)
	if err != nil || pid == 0 {
		return false
	}
	p.markEnded()
	return true
}

// kill ends the server with SIGKILL, which also reaches a stopped one, and
// returns when the process is gone and its ports are free.
func (p *process) kill() error {
	if p.hasEnded() {
		return nil
	}
	if err := p.command.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	if _, err := p.command.Process.Wait(); err != nil {
		return fmt.Errorf("wait for %s: %w", p.name, err)
	}
	p.markEnded()
	return nil
}

func (p *process) markEnded() {
	p.ended = true
	// The error is ignored: a dead reaper watches nothing.
	_ = children.forget(p.pid)
	_ = p.command.Process.Release()
}

// signal sends a signal that does not end the server.
func (p *process) signal(signal syscall.Signal) error {
	if p.hasEnded() {
		return fmt.Errorf("signal %s: it is not running", p.name)
	}
	if err := p.command.Process.Signal(signal); err != nil {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}
