package cluster

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/server"
)

// TestSlowNodeInTheLoop: a node that sends a byte at a time, or none, or more than it may, leaves
// its own calls undecided, and none of another node in the same loop.
func TestSlowNodeInTheLoop(t *testing.T) {
	for name, run := range map[string]func(net.Conn, []string) error{
		"drips": func(c net.Conn, _ []string) error {
			for { // a line that does not end
				if _, err := c.Write([]byte("1")); err != nil {
					return err
				}
				time.Sleep(5 * time.Millisecond)
			}
		},
		"is silent":    func(net.Conn, []string) error { return nil },
		"a long array": saysForEver("*130000\r\n", ":"+strings.Repeat("0", 99)+"\r\n"),
		"long strings": saysForEver("*100\r\n", "$65528\r\n"+strings.Repeat("x", 65528)+"\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			one, err := server.NewLoops(1)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(context.Background())
			var running sync.WaitGroup
			running.Go(func() { _ = one.Run(ctx) })
			t.Cleanup(func() { stop(); running.Wait() })
			toOne := func(conn *net.TCPConn) (Socket, error) { return one.Adopt(conn) }
			f := startFake(t, nil, run)
			slow := openIn(t, Options{IOTimeout: 200 * time.Millisecond, ToLoop: toOne}, f.addr())
			healthy := openIn(t, Options{IOTimeout: 5 * time.Second, ToLoop: toOne}, redistest.SharedNode(t).Addr)
			set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000/s"})
			take := func(s *Store, tenant string) limit.Source {
				var b limit.Buffer
				now := time.Now()
				set.Resolve(&limit.Request{Tenant: tenant, Cost: 1}, testAddrs, now.UnixMicro(), &b)
				s.Take(limit.DecisionTime{Now: now.UnixMicro(), Start: now, Timeout: 2 * time.Second}, b.Items, b.Calls)
				return b.Items[0].Source
			}
			var asking sync.WaitGroup
			for range 3 {
				asking.Go(func() {
					if got := take(slow, "slow"); got != limit.SourceNone {
						t.Errorf("the slow node's call is decided by %s", got)
					}
				})
			}
			for i := range 300 {
				if got := take(healthy, fmt.Sprint(name, i)); got != limit.SourceStore {
					t.Errorf("call %d of the other node is decided by %s", i, got)
				}
			}
			asking.Wait()
		})
	}
}

// openIn returns a store that runs until the test ends.
func openIn(t *testing.T, opts Options, addr string) *Store {
	t.Helper()
	opts.Addrs = []string{addr}
	s, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return running(t, s)
}

// lateWriter is a socket whose first write returns after the replies to it were read, and after
// the next connection was opened.
type lateWriter struct {
	Socket
	once *sync.Once
	then func()
}

func (s lateWriter) Write(b []byte) (int, error) {
	n, err := s.Socket.Write(b)
	s.once.Do(s.then)
	return n, err
}

// TestReplacedAfterALateWrite: a connection is replaced as soon as nothing is in flight, also if
// the sender is the last to find that.
func TestReplacedAfterALateWrite(t *testing.T) {
	var s *Store
	var p *pipeline
	then := func() {
		next, err := p.open(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		p.mu.Lock()
		p.next = next
		p.mu.Unlock()
		redistest.Eventually(t, 5*time.Second, "the reply", func() bool { return p.oldestInFlight() == nil })
	}
	var once sync.Once
	s = openThrough(t, Options{IOTimeout: time.Minute}, func(s Socket) Socket { return lateWriter{s, &once, then} }, redistest.SharedNode(t).Addr)
	for _, n := range s.top.Load().nodes {
		p = n.pipeline
	}
	decideOnce(t, s)
	redistest.Eventually(t, 5*time.Second, "the replacement", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.next == nil
	})
	decideOnce(t, s)
}
