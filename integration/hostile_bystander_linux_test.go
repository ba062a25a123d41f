package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	bystanderPace = 4 * time.Millisecond // between two checks
	newcomerPace  = time.Second          // between two new connections
	// bystanderPatience is after which an answer is an error. It is far beyond every goal,
	// so that a late answer is measured.
	bystanderPatience = 10 * time.Second
)

// experience is how a bystander was served.
type experience struct {
	answers  []sample
	errors   int // answers that were none, or wrong
	refused  int // connections that were refused in a full proxy
	degraded int // decisions made without the store
	first    error
}

// quantile is the time within which this share of the answers had come, less the time
// during which the machine stood still.
func (e *experience) quantile(share float64, stalls []stall) time.Duration {
	if len(e.answers) == 0 {
		return 0
	}
	took := make([]time.Duration, len(e.answers))
	for i := range e.answers {
		took[i] = e.answers[i].took - e.answers[i].stalled(stalls)
	}
	slices.Sort(took)
	return took[min(int(share*float64(len(took))), len(took)-1)]
}

// fail counts an error.
func (e *experience) fail(err error) {
	e.errors++
	if e.first == nil {
		e.first = err
	}
}

// bystander is a well-behaved client beside hostile ones: it checks on one connection at
// a steady pace, and as a newcomer makes a connection and sends PING every second.
type bystander struct {
	addr string
	full bool // newcomers may be refused
	stop chan struct{}
	wg   sync.WaitGroup

	// Each is written by one goroutine, and read after wg.
	checks, newcomers experience
}

// startBystander connects, and begins to ask.
func startBystander(addr string, full bool) (*bystander, error) {
	b := &bystander{addr: addr, full: full, stop: make(chan struct{})}
	conn, err := b.dial()
	if err != nil {
		return nil, err
	}
	b.wg.Go(func() { b.check(conn) })
	b.wg.Go(b.arrive)
	return b, nil
}

// end lets the last answers come.
func (b *bystander) end() {
	close(b.stop)
	b.wg.Wait()
}

func (b *bystander) dial() (net.Conn, error) {
	return net.DialTimeout("tcp", b.addr, bystanderPatience)
}

// check asks at its pace until it is stopped. A check that is due while the one before
// is not answered yet counts from when it was due: otherwise a proxy that stands still
// for a second would delay one check only.
func (b *bystander) check(conn net.Conn) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() { _ = conn.Close() }()
	text := []byte(bulk("RL.CHECK", "bystander", "op", "-"))
	replies := bufio.NewReader(conn)
	wait := time.NewTimer(0)
	defer wait.Stop()
	for due := time.Now(); ; due = due.Add(bystanderPace) {
		wait.Reset(time.Until(due))
		select {
		case <-b.stop:
			return
		case <-wait.C:
		}
		from := time.Now()
		if b.behind(due, from) {
			from = due
		}
		source, err := decide(conn, replies, text)
		b.checks.answers = append(b.checks.answers, sample{at: from, took: time.Since(from)})
		if source == "backstop" {
			b.checks.degraded++
		}
		if err == nil {
			continue
		}
		b.checks.fail(err)
		_ = conn.Close()
		again, err := b.dial()
		if err != nil {
			b.checks.fail(err)
			return
		}
		conn = again
		replies.Reset(conn)
		due = time.Now()
	}
}

// behind reports that the last answer came after the next check was due. A timer that
// fired late is no fault of the proxy.
func (*bystander) behind(due, now time.Time) bool { return now.Sub(due) > bystanderPace }

// decide makes a check, which must be admitted, and returns where it was decided.
func decide(conn net.Conn, replies *bufio.Reader, text []byte) (source string, err error) {
	_ = conn.SetDeadline(time.Now().Add(bystanderPatience))
	if _, err := conn.Write(text); err != nil {
		return "", err
	}
	var lines [10]string // the array, five integers, two words of two lines each
	for i := range lines {
		line, err := replies.ReadString('\n')
		if err != nil {
			return "", err
		}
		lines[i] = strings.TrimSuffix(line, "\r\n")
		if i == 0 && line != "*7\r\n" {
			return "", fmt.Errorf("a check is answered %q", line)
		}
	}
	if lines[1] != ":1" {
		return lines[9], fmt.Errorf("a check is denied: %q", lines)
	}
	return lines[9], nil
}

// arrive makes connections at their pace until it is stopped.
func (b *bystander) arrive() {
	tick := time.NewTicker(newcomerPace)
	defer tick.Stop()
	for {
		select {
		case <-b.stop:
			return
		case <-tick.C:
		}
		began := time.Now()
		err := b.ping()
		b.newcomers.answers = append(b.newcomers.answers, sample{at: began, took: time.Since(began)})
		switch {
		case err != nil && b.full:
			b.newcomers.refused++
		case err != nil:
			b.newcomers.fail(fmt.Errorf("new connection: %w", err))
		}
	}
}

// ping makes a connection, sends PING and reads the answer.
func (b *bystander) ping() error {
	conn, err := b.dial()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(bystanderPatience))
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && answer != "+PONG\r\n" {
		err = fmt.Errorf("PING is answered %q", answer)
	}
	return err
}
