package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// cpuTime returns the time that all threads of some processes have run, by the
// scheduler's account. The time of a thread that has ended is lost; servers keep their
// threads.
func cpuTime(pids ...int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		names, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "schedstat"))
		if err != nil || len(names) == 0 {
			return 0, fmt.Errorf("read CPU time: process %d is gone", pid)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if errors.Is(err, os.ErrNotExist) {
				continue // the thread has just ended
			}
			if err != nil {
				return 0, fmt.Errorf("read CPU time: %w", err)
			}
			ran, err := parseSchedstat(text)
			if err != nil {
				return 0, err
			}
			sum += ran
		}
	}
	return sum, nil
}

// parseSchedstat parses the first of the three numbers of a schedstat file: nanoseconds
// on a CPU.
func parseSchedstat(text []byte) (time.Duration, error) {
	first, _, _ := bytes.Cut(text, []byte{' '})
	n, err := strconv.ParseInt(string(first), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(n), nil
}

// tick is the unit of /proc/stat.
const tick = 10 * time.Millisecond

// machineTime returns the time that the CPUs of the machine have worked.
func machineTime() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read CPU time of machine: %w", err)
	}
	return parseStat(text)
}

// parseStat sums the first line of /proc/stat without idle and iowait, and without guest
// times, which are part of the others.
func parseStat(text []byte) (time.Duration, error) {
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	fields := bytes.Fields(line)
	if len(fields) < 9 || string(fields[0]) != "cpu" {
		return 0, fmt.Errorf("read CPU time of machine: %.80q is no summary", line)
	}
	var sum time.Duration
	for i, field := range fields[1:9] {
		if i == 3 || i == 4 {
			continue
		}
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time of machine: %w", err)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}
