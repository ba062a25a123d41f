package server

import (
	"net"
	"syscall"
	"testing"
)

// lastConn notes the last connection it accepts.
type lastConn struct {
	net.Listener
	accepted chan *net.TCPConn
}

func (l lastConn) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err == nil {
		// Go sets it by itself, unless told not to: start from nothing.
		_ = nc.(*net.TCPConn).SetKeepAlive(false)
		l.accepted <- nc.(*net.TCPConn)
	}
	return nc, err
}

// TestSocketOptions asks the kernel for what was set.
func TestSocketOptions(t *testing.T) {
	ln := lastConn{listen(t), make(chan *net.TCPConn, 1)}
	r := startOn(t, Options{}, ln)
	r.dial().ping()
	raw, err := receive(t, ln.accepted).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name                string
		level, option, want int
	}{
		{"keep-alive", syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
		{"keep-alive idle", syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 60},
		{"no delay", syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1},
	}
	for _, test := range tests {
		var got int
		var err error
		if e := raw.Control(func(fd uintptr) {
			got, err = syscall.GetsockoptInt(int(fd), test.level, test.option)
		}); e != nil || err != nil {
			t.Fatal(e, err)
		}
		if got != test.want {
			t.Errorf("%s is %d, want %d", test.name, got, test.want)
		}
	}
}
