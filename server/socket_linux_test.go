package server

import (
	"net"
	"syscall"
	"testing"
)

// lastConn records the socket of the last connection it accepts, as a descriptor of its
// own.
type lastConn struct {
	net.Listener
	accepted chan int
}

func (l lastConn) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err == nil {
		// Go enables keep-alive by default: start with it disabled.
		_ = nc.(*net.TCPConn).SetKeepAlive(false)
		raw, _ := nc.(*net.TCPConn).SyscallConn()
		_ = raw.Control(func(fd uintptr) {
			own, _ := syscall.Dup(int(fd))
			l.accepted <- own
		})
	}
	return nc, err
}

// TestSocketOptions reads the socket options from the kernel.
func TestSocketOptions(t *testing.T) {
	ln := lastConn{listen(t), make(chan int, 1)}
	r := startOn(t, DefaultOptions(), ln)
	r.dial().ping()
	fd := receive(t, ln.accepted)
	defer func() { _ = syscall.Close(fd) }()
	tests := []struct {
		name                string
		level, option, want int
	}{
		{"keep-alive", syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
		{"keep-alive idle", syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 300},
		{"keep-alive interval", syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 100},
		{"no delay", syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1},
	}
	for _, test := range tests {
		got, err := syscall.GetsockoptInt(fd, test.level, test.option)
		if err != nil {
			t.Fatal(err)
		}
		if got != test.want {
			t.Errorf("%s is %d, want %d", test.name, got, test.want)
		}
	}
}
