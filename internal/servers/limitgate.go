package servers

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// Limitgate is a running limitgate.
type Limitgate struct {
	Addr  string // for clients
	Admin string // for metrics
	HTTP  string // for checks over HTTP; off or empty without them
	RLS   string // for Envoy's rate limit service; off or empty without it

	command *exec.Cmd
	ended   chan struct{} // closed when the process is gone

	mutex sync.Mutex // guards log
	log   bytes.Buffer
}

// listening is the log line of a limitgate that is ready.
var listening = regexp.MustCompile(`msg=listening addr=(\S+) admin=(\S+)(?: http=(\S+))?(?: rls=(\S+))?`)

// StartLimitgate runs `limitgate serve` with the flags, on free ports of the
// loopback interface, and returns when it listens.
func StartLimitgate(binary string, flags ...string) (*Limitgate, error) {
	return StartLimitgateWith(nil, binary, flags...)
}

// StartLimitgateWith is StartLimitgate with NAME=value pairs added to the environment of
// this process.
func StartLimitgateWith(environment []string, binary string, flags ...string) (*Limitgate, error) {
	args := append([]string{"serve", "--listen", loopbackAddr(0), "--admin", loopbackAddr(0)}, flags...)
	p := &Limitgate{command: exec.Command(binary, args...), ended: make(chan struct{})}
	p.command.Env = append(p.command.Environ(), environment...)
	stderr, err := p.command.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("open log of limitgate: %w", err)
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start limitgate: %w", err)
	}
	err = children.watch(p.PID())
	ready := make(chan []string, 1)
	go p.read(stderr, ready)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	late := time.NewTimer(startTimeout)
	defer late.Stop()
	select {
	case found := <-ready:
		p.Addr, p.Admin, p.HTTP, p.RLS = found[1], found[2], found[3], found[4]
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("start limitgate: it ended at once, its log is:\n%s", p.Log())
	case <-late.C:
		_ = p.Close()
		return nil, fmt.Errorf("start limitgate: it does not listen after %v, its log is:\n%s", startTimeout, p.Log())
	}
}

// read stores the log, sends the addresses when limitgate listens, and reaps the process.
func (p *Limitgate) read(stderr io.Reader, ready chan<- []string) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		p.mutex.Lock()
		fmt.Fprintln(&p.log, lines.Text())
		p.mutex.Unlock()
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			ready <- found
		}
	}
	_ = p.command.Wait() // its log has the reason
	// The error is ignored: a dead reaper watches nothing.
	_ = children.forget(p.PID())
	close(p.ended)
}

// PID is the id of the process.
func (p *Limitgate) PID() int { return p.command.Process.Pid }

// Log returns the log of limitgate so far.
func (p *Limitgate) Log() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.log.String()
}

// Close sends SIGTERM to limitgate, kills it if it does not end, and returns when it is
// gone.
func (p *Limitgate) Close() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		<-p.ended // it is gone already
		return nil
	}
	late := time.NewTimer(startTimeout)
	defer late.Stop()
	select {
	case <-p.ended:
		return nil
	case <-late.C:
	}
	if err := p.command.Process.Kill(); err != nil {
		return fmt.Errorf("kill limitgate: %w", err)
	}
	<-p.ended
	return errors.New("end limitgate: it had to be killed")
}
