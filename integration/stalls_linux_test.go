package integration

import "golang.org/x/sys/unix"

// stayOn keeps the calling thread on a processor. Where it is not allowed to be, it
// stays where it is.
func stayOn(cpu int) {
	var only unix.CPUSet
	only.Set(cpu)
	_ = unix.SchedSetaffinity(0, &only)
}
