// Package sdnotify reports the state of a service to systemd, as sd_notify(3) describes it.
package sdnotify

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"
)

// States of a service.
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
	alive    = "WATCHDOG=1"
)

// minInterval bounds the rate of watchdog messages.
const minInterval = 10 * time.Millisecond

// Notifier sends states to the socket of a service manager, or nowhere if there is none.
type Notifier struct {
	socket   string
	interval time.Duration // between two watchdog messages, 0 for none
}

// New returns the Notifier of a process: getenv looks up NOTIFY_SOCKET, WATCHDOG_USEC and
// WATCHDOG_PID. A process whose id is not that of WATCHDOG_PID has no watchdog.
func New(getenv func(name string) string, pid int) *Notifier {
	n := &Notifier{socket: getenv("NOTIFY_SOCKET")}
	micros, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64)
	if id := getenv("WATCHDOG_PID"); err == nil && micros > 0 && (id == "" || id == strconv.Itoa(pid)) {
		// A third of the deadline leaves room for a message that is late.
		micros = min(micros, time.Hour.Microseconds())
		n.interval = max(time.Duration(micros)*time.Microsecond/3, minInterval)
	}
	return n
}

// Notify sends a state.
func (n *Notifier) Notify(state string) error {
	if n.socket == "" {
		return nil
	}
	// Package net sends to the abstract socket that a name with @ at its beginning means.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	return nil
}

// Run sends watchdog messages until ctx ends. A message that cannot be sent is left out: the
// manager restarts a service when too many of them are missing.
func (n *Notifier) Run(ctx context.Context) error {
	if n.interval == 0 || n.socket == "" {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(n.interval)
	defer tick.Stop()
	for {
		_ = n.Notify(alive)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
