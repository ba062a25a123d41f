package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// crowdTick is how often a crowd looks for clients whose turn is due.
	crowdTick = 2 * time.Millisecond
	// crowdArrival is the share of its time, one part in so many, during which a crowd
	// connects.
	crowdArrival = 3
	// crowdNice is the niceness of a crowd, which yields to the process under test.
	// Clients of a real proxy have processors of their own.
	crowdNice = 10
)

// crowdRole is the role of a process that runs a crowd of hostile clients.
const crowdRole = "crowd"

func init() { roles[crowdRole] = beCrowd }

// party is a number of clients of a crowd with the same behaviour.
type party struct {
	Behaviour string
	Clients   int
}

// order is the task of a crowd.
type order struct {
	Addr, Admin string
	Parties     []party
	Time        time.Duration
}

// toll is the result of a crowd.
type toll struct {
	Connected int // connections that were begun
	Closed    int // those that the proxy closed, as far as a client noticed
	Sent      int // bytes
	CPU       time.Duration
}

// crowd is a process of hostile clients. It is a separate process, so that its work does
// not delay the measurements in this one.
type crowd struct {
	cmd    *exec.Cmd
	input  io.Closer // closing it ends the crowd
	output bytes.Buffer
	errors bytes.Buffer
}

// startCrowd starts a crowd, which ends when its time is over.
func startCrowd(tb testing.TB, o order) *crowd {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	c := &crowd{cmd: exec.Command(self)}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+crowdRole)
	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.errors
	input, err := c.cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	c.input = input
	if err := c.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	if err := json.NewEncoder(input).Encode(o); err != nil {
		tb.Errorf("instruct the crowd: %v", err)
	}
	return c
}

// end waits until the crowd has ended, and returns its result.
func (c *crowd) end(tb testing.TB) toll {
	tb.Helper()
	late := time.AfterFunc(startTimeout, func() { _ = c.input.Close() })
	defer late.Stop()
	var done toll
	if err := c.cmd.Wait(); err != nil {
		tb.Fatalf("the crowd ended: %v\n%s", err, &c.errors)
	}
	if err := json.Unmarshal(c.output.Bytes(), &done); err != nil {
		tb.Fatalf("read what the crowd did: %v\n%s", err, &c.output)
	}
	return done
}

// beCrowd is the role of a process that runs a crowd. Its input starts with an order, and
// ends when the test no longer waits for the crowd.
func beCrowd() int {
	var o order
	input := bufio.NewReader(os.Stdin)
	line, err := input.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "read order:", err)
		return 1
	}
	abandoned := make(chan struct{})
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, input)
		close(abandoned)
	}()
	done, err := act(o, abandoned)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(done)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "act as a crowd:", err)
		return 1
	}
	return 0
}

// act runs the turns of every client until the time of the order is over. One thread runs
// all clients, because none of their steps blocks.
func act(o order, abandoned <-chan struct{}) (toll, error) {
	runtime.LockOSThread()
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, crowdNice); err != nil {
		return toll{}, err
	}
	clients, err := o.clients(time.Now())
	if err != nil {
		return toll{}, err
	}
	tick := time.NewTicker(crowdTick)
	defer tick.Stop()
	var done toll
	for end := time.Now().Add(o.Time); time.Now().Before(end); {
		now := time.Now()
		for _, c := range clients {
			if !c.next.After(now) {
				c.turn(now, &done)
			}
		}
		select {
		case <-tick.C:
		case <-abandoned:
			return done, nil
		}
	}
	for _, c := range clients {
		c.disconnect()
	}
	done.CPU, err = ownCPU()
	return done, err
}

// clients returns the clients of an order. Those of each party arrive evenly, and all
// parties arrive at the same time.
func (o *order) clients(now time.Time) ([]*attacker, error) {
	var all []*attacker
	for _, party := range o.Parties {
		how, err := behaviourNamed(party.Behaviour)
		if err != nil {
			return nil, err
		}
		addr := o.Addr
		if how.admin {
			addr = o.Admin
		}
		to, err := socketAddr(addr)
		if err != nil {
			return nil, err
		}
		payload := []byte(how.text)
		for i := range party.Clients {
			begin := now.Add(o.Time / crowdArrival * time.Duration(i) / time.Duration(party.Clients))
			all = append(all, &attacker{behaviour: how, payload: payload, to: to, fd: -1, next: begin})
		}
	}
	return all, nil
}

// ownCPU returns the CPU time of this process.
func ownCPU() (time.Duration, error) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("read own CPU time: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}
