package integration

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// The buffers of an attacker's socket are small, so that the proxy has to hold the
	// unread replies, and not the kernel on the attacker's side.
	attackerReceives = 4 << 10
	attackerSends    = 64 << 10
	// attackerSegment is the payload of a packet on Ethernet. With the long segments of
	// the loopback interface the kernel would take 2.6 MB of the proxy's replies at once.
	attackerSegment = 1460
	// attackerBudget bounds the bytes that an attacker sends in total.
	attackerBudget = 1 << 20
	// busyPause is the pause of an attacker after its socket was full.
	busyPause = 50 * time.Millisecond
)

// attacker is one hostile client.
type attacker struct {
	*behaviour
	payload []byte // its text, shared by attackers of the same behaviour
	to      *unix.SockaddrInet4
	fd      int // -1 without a connection
	at      int // how much of text has been sent
	rounds  int // how often text was sent on this connection
	sent    int // bytes, on all connections
	next    time.Time
	gone    bool // it has half-closed, or has no more text
}

// scratch is the buffer of all reads. One thread runs all attackers.
var scratch [16 << 10]byte

// turn runs one step of an attacker. It never blocks.
func (a *attacker) turn(now time.Time, done *toll) {
	a.next = now.Add(a.every)
	if a.fd < 0 {
		if err := a.connect(); err != nil {
			a.closed(done)
			return
		}
		done.Connected++
	}
	if a.reads > 0 && !a.read() {
		a.closed(done)
		return
	}
	if a.gone {
		return
	}
	err := a.write(done)
	switch {
	case errors.Is(err, unix.EAGAIN):
		a.next = now.Add(max(a.every, busyPause))
	case err != nil:
		a.closed(done)
	case a.at == len(a.payload):
		a.finish()
	}
}

// connect starts to connect. On the loopback interface that mostly succeeds at once.
func (a *attacker) connect() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	a.fd, a.at, a.rounds, a.gone = fd, 0, 0, false
	if err := errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, attackerReceives),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, attackerSends),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, attackerSegment),
	); err != nil {
		return err
	}
	if err := unix.Connect(fd, a.to); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	return nil
}

// read reads some replies, and reports whether the connection is still open.
func (a *attacker) read() bool {
	for left := a.reads; left > 0; {
		n, err := unix.Read(a.fd, scratch[:min(left, len(scratch))])
		if errors.Is(err, unix.EAGAIN) {
			return true
		}
		if err != nil || n == 0 {
			return false
		}
		left -= n
	}
	return true
}

// write sends the rest of text, or its next piece.
func (a *attacker) write(done *toll) error {
	rest := a.payload[a.at:]
	if a.piece > 0 {
		rest = rest[:min(a.piece, len(rest))]
	}
	if len(rest) == 0 {
		return nil
	}
	if a.sent+len(rest) > attackerBudget {
		a.gone = true
		return nil
	}
	n, err := unix.SendmsgN(a.fd, rest, nil, nil, unix.MSG_NOSIGNAL)
	if err != nil {
		return err
	}
	a.at += n
	a.sent += n
	done.Sent += n
	if n < len(rest) {
		return unix.EAGAIN
	}
	return nil
}

// finish leaves, sends text again, or stays, after text has been sent.
func (a *attacker) finish() {
	a.rounds++
	switch {
	case a.leaves == byClose:
		a.disconnect()
	case a.leaves == byReset:
		_ = unix.SetsockoptLinger(a.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		a.disconnect()
	case a.leaves == byHalf:
		_ = unix.Shutdown(a.fd, unix.SHUT_WR)
		a.gone = true
	case a.rounds < a.times:
		a.at = 0
	default:
		a.gone = true
	}
}

// closed handles a connection that the proxy has closed, or that could not be opened.
func (a *attacker) closed(done *toll) {
	done.Closed++
	a.disconnect()
	a.next = a.next.Add(busyPause)
}

func (a *attacker) disconnect() {
	if a.fd >= 0 {
		_ = unix.Close(a.fd)
		a.fd = -1
	}
}

// socketAddr returns the address of a listener on the loopback interface.
func socketAddr(text string) (*unix.SockaddrInet4, error) {
	addr, err := netip.ParseAddrPort(text)
	if err != nil {
		return nil, err
	}
	if !addr.Addr().Is4() || !addr.Addr().IsLoopback() {
		return nil, fmt.Errorf("%s is not an IPv4 address of the loopback interface", text)
	}
	return &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}, nil
}
