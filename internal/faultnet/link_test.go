package faultnet

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds the wait of a test.
const patience = 10 * time.Second

// listenEcho starts an echo server, and a link to it.
func listenEcho(t *testing.T) *Link {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	l, err := Listen(server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func dial(t *testing.T, l *Link) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// echo sends a line and returns the reply, and how long it took.
func echo(t *testing.T, conn *net.TCPConn, line string) (string, time.Duration, error) {
	t.Helper()
	begin := time.Now()
	if err := conn.SetDeadline(begin.Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(line)); err != nil {
		return "", 0, err
	}
	got, err := bufio.NewReader(conn).ReadString('\n')
	return got, time.Since(begin), err
}

func TestLinkForwards(t *testing.T) {
	conn := dial(t, listenEcho(t))
	for _, line := range []string{"one\n", "two\n"} {
		if got, _, err := echo(t, conn, line); got != line || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, line)
		}
	}
}

func TestRepliesAreDelayedAllAtOnce(t *testing.T) {
	const delay = 100 * time.Millisecond
	l := listenEcho(t)
	conn := dial(t, l)
	l.Delay(delay)
	if _, took, err := echo(t, conn, "one\n"); took < delay || err != nil {
		t.Errorf("a reply took %s, %v, want %s at least", took, err, delay)
	}
	begin := time.Now()
	const lines = 20
	for range lines {
		if _, err := conn.Write([]byte("more\n")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.ReadFull(conn, make([]byte, lines*len("more\n"))); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < delay || took > lines/2*delay {
		t.Errorf("%d replies took %s: each waited for the one before", lines, took)
	}
	l.Delay(0)
	if got, _, err := echo(t, conn, "two\n"); got != "two\n" || err != nil {
		t.Errorf("got %q, %v after the delay", got, err)
	}
}

func TestSegmentsAreLostWithTheirConnection(t *testing.T) {
	l := listenEcho(t)
	conn := dial(t, l)
	if _, _, err := echo(t, conn, "one\n"); err != nil {
		t.Fatal(err)
	}
	l.Reset(1)
	if _, _, err := echo(t, conn, "two\n"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
	l.Reset(0)
	if got, _, err := echo(t, dial(t, l), "three\n"); got != "three\n" || err != nil {
		t.Errorf("a new connection got %q, %v", got, err)
	}
}

func TestBlockedLinkDeliversLater(t *testing.T) {
	l := listenEcho(t)
	conn := dial(t, l)
	if _, _, err := echo(t, conn, "one\n"); err != nil {
		t.Fatal(err)
	}
	l.Block()
	l.Block() // has no further effect
	if _, err := conn.Write([]byte("two\n")); err != nil {
		t.Fatal(err)
	}
	late := dial(t, l) // the kernel still accepts it
	if _, err := late.Write([]byte("three\n")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*net.TCPConn{conn, late} {
		if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 8)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read %d bytes, %v, want none and no reset", n, err)
		}
	}
	l.Unblock()
	for c, want := range map[*net.TCPConn]string{conn: "two\n", late: "three\n"} {
		if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if got, err := bufio.NewReader(c).ReadString('\n'); got != want || err != nil {
			t.Errorf("got %q, %v after the block, want %q", got, err, want)
		}
	}
}

func TestClosedLinkEndsWhatItHolds(t *testing.T) {
	l := listenEcho(t)
	conn := dial(t, l)
	if _, _, err := echo(t, conn, "one\n"); err != nil {
		t.Fatal(err)
	}
	l.Block()
	if _, err := conn.Write([]byte("two\n")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 8)); err == nil {
		t.Error("read from a closed link")
	}
}
