package load

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openSocket connects to an address of the loopback interface.
func openSocket(addr string) (fd int, err error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil || !to.Addr().Is4() {
		return -1, fmt.Errorf("read address %q: an IPv4 address and a port are needed", addr)
	}
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open socket: %w", err)
	}
	err = errors.Join(
		unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		unix.SetNonblock(fd, true))
	if err != nil {
		closeSocket(fd)
		return -1, fmt.Errorf("connect to %s: %w", addr, err)
	}
	return fd, nil
}

func closeSocket(fd int) { _ = unix.Close(fd) }

// transfer reads or writes. The socket never blocks, so the scheduler need not be
// informed of the call.
func transfer(call uintptr, fd int, b []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, errAgain
		default:
			return 0, errno
		}
	}
}

func readSocket(fd int, b []byte) (int, error) {
	n, err := transfer(unix.SYS_READ, fd, b)
	if err == nil && n == 0 {
		return 0, errors.New("the server closed the connection")
	}
	return n, err
}

func writeSocket(fd int, b []byte) (int, error) { return transfer(unix.SYS_WRITE, fd, b) }

// awaitInput waits until a socket can be read.
func awaitInput(fd int, timeout time.Duration) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(timeout/time.Millisecond))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return os.NewSyscallError("poll", err)
		case n == 0:
			return fmt.Errorf("wait for server: nothing came within %v", timeout)
		default:
			return nil
		}
	}
}

// poller waits for sockets.
type poller struct {
	fd     int
	events [256]unix.EpollEvent
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	return &poller{fd: fd}, nil
}

func (p *poller) close() { closeSocket(p.fd) }

// watch makes the poller report a socket as id when it is readable and, if writing is
// set, when it is writable.
func (p *poller) watch(fd, id int, again, writing bool) error {
	op, event := unix.EPOLL_CTL_ADD, unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(id)}
	if again {
		op = unix.EPOLL_CTL_MOD
	}
	if writing {
		event.Events |= unix.EPOLLOUT
	}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, op, fd, &event))
}

// wait returns how many sockets are ready, at the latest after the timeout.
func (p *poller) wait(timeout time.Duration) (int, error) {
	spec := unix.NsecToTimespec(max(0, timeout.Nanoseconds()))
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])),
		uintptr(len(p.events)), uintptr(unsafe.Pointer(&spec)), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EINTR:
		return 0, nil
	case unix.ENOSYS: // before Linux 5.11: to the millisecond
		n, err := unix.EpollWait(p.fd, p.events[:], int((timeout+time.Millisecond-1)/time.Millisecond))
		if errors.Is(err, unix.EINTR) {
			return 0, nil
		}
		return n, os.NewSyscallError("epoll_wait", err)
	default:
		return 0, os.NewSyscallError("epoll_pwait2", errno)
	}
}

// ready returns the id and the readiness of socket i of the last wait.
func (p *poller) ready(i int) (id int, read, write bool) {
	e := &p.events[i]
	return int(e.Fd), e.Events&^unix.EPOLLOUT != 0, e.Events&unix.EPOLLOUT != 0
}
