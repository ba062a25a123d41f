//go:build long

package integration

import (
	"os/exec"
	"syscall"
)

// maxResident returns the largest resident size of a command, in KiB.
func maxResident(cmd *exec.Cmd) int64 {
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		return usage.Maxrss
	}
	return 0
}
