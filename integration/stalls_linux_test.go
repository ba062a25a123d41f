package integration

import "golang.org/x/sys/unix"

// stayOn binds the calling thread to a processor. If the system does not permit that, it
// does nothing.
func stayOn(cpu int) {
	var only unix.CPUSet
	only.Set(cpu)
	_ = unix.SchedSetaffinity(0, &only)
}
