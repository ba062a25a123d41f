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
	// watchMost is the resident size at which a process is killed to protect the machine.
	watchMost = 2 << 30
	// clockTick is the unit of CPU times in /proc.
	clockTick = time.Second / 100
)

// usage is the resources that a process has used.
type usage struct {
	peak    int // bytes resident
	threads int // maximum
	cpu     time.Duration
	ended   bool // killed because of its size
}

// usageWatch samples a process until it is stopped. The last sample remains when the
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

// look samples the current usage of the process.
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

// statusField returns a number of /proc/PID/status, 0 if it is missing.
func statusField(status []byte, name string) int {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			n, _ := strconv.Atoi(string(bytes.Fields(rest)[0]))
			return n
		}
	}
	return 0
}

// statCPU returns the CPU time in /proc/PID/stat. The command in parentheses may contain
// any character; user and system time are the 12th and 13th field after it.
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

// machineCPU returns the time during which the processors of the machine worked.
func machineCPU() time.Duration {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	busy := 0
	for i, field := range bytes.Fields(line)[1:] {
		if n, _ := strconv.Atoi(string(field)); i != 3 && i != 4 && i < 8 { // idle and iowait are left out; guest is part of user
			busy += n
		}
	}
	return time.Duration(busy) * clockTick
}
