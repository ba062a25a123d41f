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
	// crowdTick is how often a crowd looks for the clients whose turn has come.
	crowdTick = 2 * time.Millisecond
	// crowdArrival is over which part of its time a crowd comes.
	crowdArrival = 3
	// crowdNice is how much a crowd stands back for the process under test. Clients of a
	// real proxy have processors of their own.
	crowdNice = 10
)

// The role of a process that is a crowd of hostile clients.
const crowdRole = "crowd"

func init() { roles[crowdRole] = beCrowd }

// party is how many clients of a crowd behave in a way.
type party struct {
	Behaviour string
	Clients   int
}

// order is what a crowd is asked to do.
type order struct {
	Addr, Admin string
	Parties     []party
	Time        time.Duration
}

// toll is what a crowd has done.
type toll struct {
	Connected int // connections that were begun
	Closed    int // those that the proxy ended, as far as a client noticed
	Sent      int // bytes
	CPU       time.Duration
}

// crowd is a process of hostile clients. It is not this one, so that its work does not
// delay what is measured here.
type crowd struct {
	cmd    *exec.Cmd
	input  io.Closer // the crowd ends when it is closed
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

// end waits until the crowd is gone, and returns what it has done.
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

// beCrowd is the role of a process that is a crowd. Its input begins with an order, and
// ends when nobody waits for the crowd any more.
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

// act gives every client its turns until the time of the order is over. All clients
// are moved by one thread: none of what they do blocks.
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

// clients makes the clients of an order. Those of each party come evenly, and the parties
// at the same time.
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

// ownCPU is the time that this process had processors.
func ownCPU() (time.Duration, error) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("read own CPU time: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}
