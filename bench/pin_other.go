//go:build !linux

package bench

// usableCores returns no cores: only Linux pins processes.
func usableCores() ([]int, error) { return nil, nil }

func pin(int, []int) error { return nil }
