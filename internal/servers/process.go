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

// errPortTaken says that a stranger listened on the chosen port first.
var errPortTaken = errors.New("port is taken")

// process is one run of redis-server.
type process struct {
	command *exec.Cmd
	pid     int
	logPath string
	ended   bool
}

// startProcess runs redis-server in folder and returns when it is ready. Each
// run writes a log of its own, so that reading it tells of this run only.
func startProcess(folder string, run int, args []string) (*process, error) {
	binary, err := Binary("redis-server")
	if err != nil {
		return nil, err
	}
	logPath := filepath.Join(folder, "run-"+strconv.Itoa(run)+".log")
	log, err := os.Create(logPath)
	if err != nil {
		return nil, fmt.Errorf("create server log: %w", err)
	}
	defer func() { _ = log.Close() }()

	command := exec.Command(binary, args...)
	command.Dir = folder
	// A file, not a pipe: whoever reads this test's output must not have to wait
	// for the server to close it.
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	p := &process{command: command, pid: command.Process.Pid, logPath: logPath}
	if err := children.watch(p.pid); err != nil {
		return nil, errors.Join(err, p.kill())
	}
	if err := p.awaitReady(); err != nil {
		return nil, errors.Join(err, p.kill())
	}
	return p, nil
}

// awaitReady waits for the server to say in its own log that it serves. Asking
// over the port could be answered by a stranger, or be refused for want of a
// password.
func (p *process) awaitReady() error {
	deadline := time.Now().Add(startTimeout)
	for {
		ended := p.hasEnded()
		log, err := os.ReadFile(p.logPath)
		if err != nil {
			return fmt.Errorf("read server log: %w", err)
		}
		switch {
		case bytes.Contains(log, []byte("Ready to accept connections")):
			return nil
		case bytes.Contains(log, []byte("Address already in use")):
			return errPortTaken
		case ended:
			return fmt.Errorf("redis-server ended at once, its log says:\n%s", log)
		case time.Now().After(deadline):
			return fmt.Errorf("redis-server is not ready after %v, its log says:\n%s", startTimeout, log)
		}
		time.Sleep(pollInterval)
	}
}

// hasEnded reports whether the server ended by itself. It looks without
// waiting, so that no goroutine has to wait for each server: tests that look
// for leaked goroutines would find it.
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
		return fmt.Errorf("kill redis-server: %w", err)
	}
	if _, err := p.command.Process.Wait(); err != nil {
		return fmt.Errorf("wait for redis-server: %w", err)
	}
	p.markEnded()
	return nil
}

func (p *process) markEnded() {
	p.ended = true
	// A reaper that is gone has nothing to forget.
	_ = children.forget(p.pid)
	_ = p.command.Process.Release()
}

// signal sends a signal that does not end the server.
func (p *process) signal(signal syscall.Signal) error {
	if p.hasEnded() {
		return errors.New("signal redis-server: it is not running")
	}
	if err := p.command.Process.Signal(signal); err != nil {
		return fmt.Errorf("signal redis-server: %w", err)
	}
	return nil
}
