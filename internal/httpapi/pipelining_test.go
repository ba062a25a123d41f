package httpapi_test

import (
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/httpapi"
	"github.com/limitgate/limitgate/internal/users"
)

// gate admits requests one by one, as the test says.
type gate struct {
	recorder
	entered, leave, left chan struct{}
	inside, most         atomic.Int64
}

func (g *gate) Decide(u *users.User, peer netip.Addr, cmds [][][]byte, answers []commands.Answer) []commands.Answer {
	n := g.inside.Add(1)
	for most := g.most.Load(); n > most && !g.most.CompareAndSwap(most, n); most = g.most.Load() {
	}
	g.entered <- struct{}{}
	<-g.leave
	g.inside.Add(-1)
	g.left <- struct{}{}
	return g.recorder.Decide(u, peer, cmds, answers)
}

// TestPipelinedTurns: connections are answered at the same time, but one request at a time of all that are sent ahead of an
// answer.
func TestPipelinedTurns(t *testing.T) {
	const connections = 8
	g := &gate{entered: make(chan struct{}), leave: make(chan struct{}), left: make(chan struct{}, 4*connections)}
	addr := serve(t, httpapi.Options{Handler: g})
	replies := make(chan string)
	for range connections {
		go func() {
			replies <- send(t, addr, strings.Repeat("GET /check?tenant=a HTTP/1.1\r\nHost: x\r\n\r\n", 3)+"GET /check?tenant=a HTTP/1.0\r\n\r\n")
		}()
	}
	for range connections {
		<-g.entered
	}
	if g.most.Load() != connections {
		t.Errorf("%d of the first requests at a time", g.most.Load())
	}
	for range connections {
		g.leave <- struct{}{}
	}
	for range connections {
		<-g.left
	}
	g.most.Store(0)
	for range 3 * connections {
		<-g.entered
		g.leave <- struct{}{}
	}
	if g.most.Load() != 1 {
		t.Errorf("%d of the further requests at a time", g.most.Load())
	}
	for range connections {
		if reply := <-replies; strings.Count(reply, "200 OK") != 4 {
			t.Errorf("%s", reply)
		}
	}
}
