package bench

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// usableCores returns the cores on which this process may run.
func usableCores() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read cores: %w", err)
	}
	var cores []int
	for c := 0; len(cores) < set.Count(); c++ {
		if set.IsSet(c) {
			cores = append(cores, c)
		}
	}
	return cores, nil
}

// pin lets the threads of a process run on these cores only; threads that they start do so
// too. Without cores it does nothing.
func pin(pid int, cores []int) error {
	if len(cores) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, c := range cores {
		set.Set(c)
	}
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return fmt.Errorf("list threads: %w", err)
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err == nil {
			err = unix.SchedSetaffinity(id, &set)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
			return fmt.Errorf("pin thread %s: %w", t.Name(), err)
		}
	}
	return nil
}
