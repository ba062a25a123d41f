package servers

import (
	"errors"
	"fmt"
	"sync"
)

// emulator is a running emulator of AWS that keeps all data in memory. Its methods may be
// called from any goroutine.
type emulator struct {
	Addr string // host and port

	folder string
	claim  *port
	what   program
	args   []string

	mutex   sync.Mutex // guards the fields below
	process *process
	runs    int
}

// launch starts the emulator with its log in folder, on a port of the range. Describe
// returns the program and arguments for a port. It returns when the emulator accepts
// connections.
func (e *emulator) launch(folder string, from portRange, describe func(number int) (program, []string)) error {
	for range portAttempts {
		claim, err := reservePort(from)
		if err != nil {
			return err
		}
		e.Addr, e.folder, e.claim = loopbackAddr(claim.number), folder, claim
		e.what, e.args = describe(claim.number)
		err = e.run()
		if err == nil {
			return nil
		}
		claim.release()
		if !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return fmt.Errorf("start %s %d times: %w", e.what.name, portAttempts, errPortTaken)
}

// run starts the process anew.
func (e *emulator) run() error {
	e.runs++
	p, err := startProcess(e.what, e.folder, e.runs, e.args)
	if err == nil {
		e.process = p
	}
	return err
}

// Kill ends the emulator as a crash would, and returns when it is gone. Killing a dead
// one does nothing.
func (e *emulator) Kill() error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.process.kill()
}

// Restart starts the emulator again on the same port, empty, and kills it first if it
// still runs.
func (e *emulator) Restart() error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if err := e.process.kill(); err != nil {
		return err
	}
	return e.run()
}

// PID is the id of the emulator's process.
func (e *emulator) PID() int {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.process.pid
}

// Close ends the emulator for good and frees its port.
func (e *emulator) Close() error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	err := e.process.kill()
	e.claim.release()
	return err
}
