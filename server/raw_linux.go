package server

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Calls on the sockets of a loop never block. So they need not prepare the scheduler for a wait,
// which costs as much as a short call.

// readNow reads from a non-blocking descriptor.
func readNow(fd int, b []byte) (int, error) { return rawCall(syscall.SYS_READ, fd, b) }

// writeNow writes to a non-blocking descriptor.
func writeNow(fd int, b []byte) (int, error) { return rawCall(syscall.SYS_WRITE, fd, b) }

// epollWait waits for events, timeout milliseconds at most. Only a call that does not wait is made
// without preparing the scheduler.
func epollWait(epoll int, events []unix.EpollEvent, timeout int) (int, error) {
	if timeout != 0 {
		return unix.EpollWait(epoll, events, timeout)
	}
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

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
