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
	// bystanderPatience is the deadline of a reply. It is far beyond every goal, so that
	// a late reply is measured.
	bystanderPatience = 10 * time.Second
)

// experience is the service that a bystander got.
type experience struct {
	answers  []sample
	errors   int // missing or wrong replies
	refused  int // connections that a full proxy refused
	degraded int // decisions made without the store
	first    error
}

// quantile returns the time within which this share of the replies arrived, less the time
// during which the machine was stalled.
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

// bystander is a well-behaved client beside hostile ones: it sends checks on one
// connection at a steady pace, and as a newcomer opens a connection and sends PING every
// second.
type bystander struct {
	addr string
	full bool // newcomers may be refused
	stop chan struct{}
	wg   sync.WaitGroup

	// Each is written by one goroutine, and read after wg.
	checks, newcomers experience
}

// startBystander connects, and starts the requests.
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

// end stops the requests and waits for the last replies.
func (b *bystander) end() {
	close(b.stop)
	b.wg.Wait()
}

func (b *bystander) dial() (net.Conn, error) {
	return net.DialTimeout("tcp", b.addr, bystanderPatience)
}

// check sends checks at its pace until it is stopped. The time of a check that is due
// before the previous reply counts from when it was due; otherwise a proxy that stalls
// for a second would delay only one check.
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

// behind reports that the last reply came after the next check was due. The proxy is not
// to blame for a timer that fired late.
func (*bystander) behind(due, now time.Time) bool { return now.Sub(due) > bystanderPace }

// decide makes a check, which must be admitted, and returns the source of the decision.
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

// arrive opens connections at its pace until it is stopped.
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

// ping opens a connection, sends PING and reads the reply.
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
