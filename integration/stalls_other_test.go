//go:build !linux

package integration

// stayOn does nothing: this system has no thread affinity.
func stayOn(int) {}
