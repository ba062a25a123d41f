package integration

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

const (
	// recovery is the time that a proxy may need to notice that the hostile clients are
	// gone.
	recovery = 2 * time.Second
	// spareDescriptors is how many more descriptors than before a proxy may have: those
	// of newcomers that have just left, and its own.
	spareDescriptors = 20
	// storeRest bounds the commands a second that a store gets from a proxy without
	// clients.
	storeRest = 200
)

// aftermath lists the differences to the state before, some time after the hostile
// clients have left: newcomers that are not served, connections that are still open, work
// without a client.
func aftermath(t *testing.T, p *proxy, store *redistest.Node, b *bystander, open int) []string {
	t.Helper()
	var left []string
	if err := repeatedly(recovery, b.ping); err != nil {
		left = append(left, fmt.Sprintf("no newcomer is served afterwards: %v", err))
	}
	if err := repeatedly(recovery, func() error { return p.hasClosed(open) }); err != nil {
		left = append(left, err.Error())
	}
	if store != nil {
		if err := repeatedly(recovery, func() error { return atRest(t, store) }); err != nil {
			left = append(left, err.Error())
		}
	}
	return left
}

// atRest returns nil if a store has little load for half a second.
func atRest(t *testing.T, store *redistest.Node) error {
	t.Helper()
	before := commandsOf(t, store)
	pause(time.Second / 2)
	if n := commandsOf(t, store) - before; n > storeRest/2 {
		return fmt.Errorf("the store gets %d commands a second afterwards", 2*n)
	}
	return nil
}

// repeatedly calls ask until it returns no error, or the time is over.
func repeatedly(limit time.Duration, ask func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.Now().Add(limit)
	for {
		err := ask()
		if err == nil || time.Now().After(late) {
			return err
		}
		<-tick.C
	}
}

// hasClosed returns nil if the proxy has about as many descriptors as before.
func (p *proxy) hasClosed(before int) error {
	if now := p.descriptors(); now > before+spareDescriptors {
		return fmt.Errorf("%d connections are kept afterwards", now-before)
	}
	return nil
}

// descriptors returns how many descriptors the proxy has open, 0 if it is gone.
func (p *proxy) descriptors() int {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	return len(open)
}

// commandsOf returns how many commands a server has executed.
func commandsOf(t *testing.T, node *redistest.Node) int {
	t.Helper()
	fields, err := node.Fields(t.Context(), "INFO", "stats")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(fields["total_commands_processed"])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
