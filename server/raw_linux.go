package server

import (
	"syscall"
	"unsafe"
)

// Calls on the sockets of a loop never block. So they need not prepare the scheduler for a wait,
// which costs as much as a short call.

// readNow reads from a non-blocking descriptor.
func readNow(fd int, b []byte) (int, error) { return rawCall(syscall.SYS_READ, fd, b) }

// writeNow writes to a non-blocking descriptor.
func writeNow(fd int, b []byte) (int, error) { return rawCall(syscall.SYS_WRITE, fd, b) }

func rawCall(trap uintptr, fd int, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, _, errno := syscall.RawSyscall(trap, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}
