//go:build long

package integration

import (
	"os/exec"
	"syscall"
)

// maxResident returns the most memory that a command had, in KiB.
func maxResident(cmd *exec.Cmd) int64 {
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		return usage.Maxrss
	}
	return 0
}
