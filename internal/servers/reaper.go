package servers

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// reaperScript keeps a list of process ids and kills the remaining processes when its
// input ends. It outlives the interrupt key, which reaches the whole process group.
const reaperScript = `
trap '' INT TERM HUP QUIT
pids=' '
while read -r verb pid; do
	case $verb in
	watch) pids="$pids$pid " ;;
	forget) pids="${pids%% $pid *} ${pids#* $pid }" ;;
	esac
done
[ "$pids" = ' ' ] || kill -9 $pids 2>/dev/null
`

// reaper is a child process that kills the servers of this process if it dies without
// ending them: a test that panics or times out, and a program that is killed, leave no
// server behind.
type reaper struct {
	once  sync.Once
	mutex sync.Mutex
	input io.WriteCloser
	err   error
}

// children watches every process that this one starts.
var children reaper

// watch adds a process that must not outlive this one.
func (r *reaper) watch(pid int) error {
	r.once.Do(func() { r.input, r.err = startReaper() })
	if r.err != nil {
		return r.err
	}
	return r.send("watch", pid)
}

// forget removes a watch, because an ended process's id may be given to another process.
func (r *reaper) forget(pid int) error {
	return r.send("forget", pid)
}

func (r *reaper) send(verb string, pid int) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if _, err := fmt.Fprintln(r.input, verb, pid); err != nil {
		return fmt.Errorf("write to reaper: %w", err)
	}
	return nil
}

// startReaper starts the child. This process does not wait for it: it ends with its
// input, which ends with this process.
func startReaper() (io.WriteCloser, error) {
	command := exec.Command("sh", "-c", reaperScript)
	input, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("open reaper input: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start reaper: %w", err)
	}
	return input, nil
}
