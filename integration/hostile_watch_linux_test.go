package integration

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	watchPace = 20 * time.Millisecond
	// watchMost is the resident size at which a process is ended for the machine's sake.
	watchMost = 2 << 30
	// clockTick is the unit of CPU times in /proc.
	clockTick = time.Second / 100
)

// usage is what a process has used.
type usage struct {
	peak    int // bytes resident
	threads int // at the most
	cpu     time.Duration
	ended   bool // for its size
}

// usageWatch looks at a process until it is stopped. What it saw last stays when the
// process dies.
type usageWatch struct {
	stop chan struct{}
	wg   sync.WaitGroup
	seen usage // written by one goroutine, and read after wg
}

func watchUsage(p *proxy) *usageWatch {
	w := &usageWatch{stop: make(chan struct{})}
	w.wg.Go(func() {
		tick := time.NewTicker(watchPace)
		defer tick.Stop()
		for {
			w.look(p)
			select {
			case <-w.stop:
				w.look(p)
				return
			case <-tick.C:
			}
		}
	})
	return w
}

func (w *usageWatch) end() usage {
	close(w.stop)
	w.wg.Wait()
	return w.seen
}

// look reads what the process uses now.
func (w *usageWatch) look(p *proxy) {
	pid := p.cmd.Process.Pid
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return // it is gone
	}
	w.seen.peak = max(w.seen.peak, statusField(status, "VmHWM")<<10)
	w.seen.threads = max(w.seen.threads, statusField(status, "Threads"))
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		w.seen.cpu = max(w.seen.cpu, statCPU(stat))
	}
	if statusField(status, "VmRSS")<<10 > watchMost {
		w.seen.ended = true
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
	}
}

// statusField returns a number of /proc/PID/status, 0 if it is not there.
func statusField(status []byte, name string) int {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			n, _ := strconv.Atoi(string(bytes.Fields(rest)[0]))
			return n
		}
	}
	return 0
}

// statCPU returns the CPU time in /proc/PID/stat. The command in parentheses may hold
// anything; user and system time are the 12th and 13th field behind it.
func statCPU(stat []byte) time.Duration {
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	fields := bytes.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(string(fields[11]))
	system, _ := strconv.Atoi(string(fields[12]))
	return time.Duration(user+system) * clockTick
}

// machineCPU is the time that all processors of the machine worked.
func machineCPU() time.Duration {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	busy := 0
	for i, field := range bytes.Fields(line)[1:] {
		if n, _ := strconv.Atoi(string(field)); i != 3 && i != 4 && i < 8 { // idle, waiting; guests are in user
			busy += n
		}
	}
	return time.Duration(busy) * clockTick
}
