package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
)

// MotoVariable names the variable with the path of moto_server.
const MotoVariable = "LIMITGATE_MOTO"

// Moto is a running moto_server: an emulator of AWS that keeps all in memory. Its
// methods may be called from any goroutine.
type Moto struct {
	Addr string // host and port

	folder string
	claim  *port
	binary string

	mutex   sync.Mutex // guards what follows
	process *process
	runs    int
}

// motoBinary returns the path of moto_server.
func motoBinary() (string, error) {
	wanted := "moto_server"
	if path := os.Getenv(MotoVariable); path != "" {
		wanted = path
	}
	path, err := exec.LookPath(wanted)
	if err != nil {
		return "", fmt.Errorf("find moto_server: run make test, or pip install 'moto[server]==5.2.1' and set %s to the file: %w", MotoVariable, err)
	}
	return path, nil
}

// StartMoto starts an emulator with its log in folder. It returns when the emulator
// accepts connections.
func StartMoto(folder string) (*Moto, error) {
	binary, err := motoBinary()
	if err != nil {
		return nil, err
	}
	for range portAttempts {
		claim, err := reservePort(motoPorts)
		if err != nil {
			return nil, err
		}
		m := &Moto{Addr: loopbackAddr(claim.number), folder: folder, claim: claim, binary: binary}
		err = m.run()
		if err == nil {
			return m, nil
		}
		claim.release()
		if !errors.Is(err, errPortTaken) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("start moto_server %d times: %w", portAttempts, errPortTaken)
}

// run starts the process anew.
func (m *Moto) run() (err error) {
	m.runs++
	what := program{"moto_server", m.binary, "Running on http://" + m.Addr}
	m.process, err = startProcess(what, m.folder, m.runs, []string{"-H", "127.0.0.1", "-p", strconv.Itoa(m.claim.number)})
	return err
}

// Kill ends the emulator as a crash would, and returns when it is gone. Killing a dead
// one does nothing.
func (m *Moto) Kill() error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.process.kill()
}

// Restart starts the emulator again on the same port, with nothing in it, and kills it
// first if it still runs.
func (m *Moto) Restart() error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if err := m.process.kill(); err != nil {
		return err
	}
	return m.run()
}

// PID is the id of the emulator's process.
func (m *Moto) PID() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.process.pid
}

// Close ends the emulator for good and frees its port.
func (m *Moto) Close() error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	err := m.process.kill()
	m.claim.release()
	return err
}
