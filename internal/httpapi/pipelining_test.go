package httpapi_test

import (
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/httpapi"
	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/internal/wrongport"
)

// gate admits requests one by one, as the test says.
type gate struct {
	recorder
	entered, leave, left chan struct{}
	inside, most         int // guarded by mu
}

// mostInside returns the most requests that were inside at a time, since the last call.
func (g *gate) mostInside() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	most := g.most
	g.most = 0
	return most
}

func (g *gate) Decide(u *users.User, peer netip.Addr, cmds [][][]byte, answers []commands.Answer) []commands.Answer {
	g.mu.Lock()
	g.inside++
	g.most = max(g.most, g.inside)
	g.mu.Unlock()
	g.entered <- struct{}{}
	<-g.leave
	g.mu.Lock()
	g.inside--
	g.mu.Unlock()
	g.left <- struct{}{}
	return g.recorder.Decide(u, peer, cmds, answers)
}

// TestPipelinedTurns: connections are answered at the same time, but one request at a time of all that are sent ahead of an
// answer.
func TestPipelinedTurns(t *testing.T) {
	const connections = 8
	g := &gate{entered: make(chan struct{}), leave: make(chan struct{}), left: make(chan struct{}, 4*connections)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	serveBound(t, httpapi.Options{Handler: g}, wrongport.Plain(httpapi.Bound(l), slog.New(slog.DiscardHandler))) // as a proxy has it
	replies := make(chan string)
	for range connections {
		go func() {
			replies <- send(t, addr, strings.Repeat("GET /check?tenant=a HTTP/1.1\r\nHost: x\r\n\r\n", 3)+"GET /check?tenant=a HTTP/1.0\r\n\r\n")
		}()
	}
	for range connections {
		<-g.entered
	}
	if n := g.mostInside(); n != connections {
		t.Errorf("%d of the first requests at a time", n)
	}
	for range connections {
		g.leave <- struct{}{}
	}
	for range connections {
		<-g.left
	}
	g.mostInside()
	for range 3 * connections {
		<-g.entered
		g.leave <- struct{}{}
	}
	if n := g.mostInside(); n != 1 {
		t.Errorf("%d of the further requests at a time", n)
	}
	for range connections {
		if reply := <-replies; strings.Count(reply, "200 OK") != 4 {
			t.Errorf("%s", reply)
		}
	}
}
