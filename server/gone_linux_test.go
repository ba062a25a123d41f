package server

import (
	"errors"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPostAfterEnd: post on a loop that has ended writes to no descriptor, which may be
// that of another file by then.
func TestPostAfterEnd(t *testing.T) {
	p, err := newLoop()
	if err != nil {
		t.Fatal(err)
	}
	p.stop() // so that the loop goes to sleep and ends
	p.run()
	var others []int
	for range 4 { // the numbers are those that have become free
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(fd) }()
		others = append(others, fd)
	}
	p.post(nil, 0, func(*epollConn) { t.Error("called") })
	for _, fd := range others {
		var count [8]byte
		if _, err := unix.Read(fd, count[:]); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("descriptor %d of another file was written to (%v)", fd, err)
		}
	}
}

// TestPanicInBegin: a connection whose session panicked is not served any more, whatever
// else has arrived.
func TestPanicInBegin(t *testing.T) {
	capture(t)
	f := &front{}
	r := startWaiters(t, Options{}, f)
	bystander := r.dial()
	bystander.send(command("NOW"))
	bystander.expect(command("NOW"))
	for range 20 {
		c := r.dial()
		c.send(strings.Repeat(command("BROKEN"), 3*asyncCommands))
		c.expectEnd("")
		r.closedSession()
	}
	bystander.send(command("NOW"))
	bystander.expect(command("NOW"))
	if got := r.server.Stats().Panics; got != 20 {
		t.Errorf("%d panics, want 20", got)
	}
}

// TestDrainAnswersWhatWasRead: a drain answers every complete command that was read, in
// however many batches.
func TestDrainAnswersWhatWasRead(t *testing.T) {
	f := &front{}
	r := startWaiters(t, Options{}, f)
	c := r.dial()
	one := command("LATER", "x")
	read := smallBuffer / len(one) // complete commands in the first read
	c.send(strings.Repeat(one, 2*read))
	first := receive(t, f.asked)
	r.stop()
	await(t, "the drain begins", func() bool { return r.refused() })
	first.answer()
	for answered := asyncCommands; answered < read; answered += asyncCommands {
		receive(t, f.asked).answer()
	}
	c.expectCleanEnd(strings.Repeat(one, read))
}

// refused reports whether the server accepts no more connections.
func (r *run) refused() bool {
	nc, err := net.Dial("tcp", r.addr)
	if err != nil {
		return true
	}
	nc.Close()
	return false
}
