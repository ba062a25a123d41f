package cluster

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/server"
)

// TestSlowNodeInTheLoop: a node that sends a byte at a time, or none, or more than it may, leaves
// its own calls undecided, and none of another node in the same loop.
func TestSlowNodeInTheLoop(t *testing.T) {
	for name, run := range map[string]func(net.Conn, []string) error{
		"drips": func(c net.Conn, _ []string) error {
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for { // a line that does not end
				if _, err := c.Write([]byte("1")); err != nil {
					return err
				}
				<-tick.C
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
	p = onlyPipeline(s)
	decideOnce(t, s)
	redistest.Eventually(t, 5*time.Second, "the replacement", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.next == nil
	})
	decideOnce(t, s)
}

// TestBrokenBatchIsCountedOnce: the failures of a batch whose connection broke do not count
// against the calls after it.
func TestBrokenBatchIsCountedOnce(t *testing.T) {
	for name, loop := range map[string]func(*net.TCPConn) (Socket, error){"in a loop": toLoop, "in a goroutine": nil} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			f := startFake(t, nil, func(c net.Conn, _ []string) error {
				switch asked.Add(1) {
				case 1:
					return says("-OOM command not allowed when used memory > 'maxmemory'.\r\n")(c, nil)
				case 2:
					return errEnough
				default:
					return says("-LGFORMAT x\r\n")(c, nil) // which is no fault of the node
				}
			})
			s, err := Open(t.Context(), Options{Addrs: []string{f.addr()}, IOTimeout: 5 * time.Second, DialTimeout: 5 * time.Second, ToLoop: loop})
			if err != nil {
				t.Fatal(err)
			}
			p := onlyPipeline(s)
			outcomes := make(chan breaker.Outcome, 100)
			p.record = func(o breaker.Outcome) { outcomes <- o }
			running(t, s)
			set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000/s"})
			take := func(ids ...string) {
				var b limit.Buffer
				now := time.Now()
				for _, id := range ids { // each a command of its own
					set.Resolve(&limit.Request{Tenant: "t", Cost: 1, ID: id}, testAddrs, now.UnixMicro(), &b)
				}
				s.Take(limit.DecisionTime{Now: now.UnixMicro(), Start: now, Timeout: 2 * time.Second}, b.Items, b.Calls)
			}
			take("one", "two")
			if broken := <-outcomes; broken.Failed != 1 {
				t.Fatalf("the broken batch is counted as %+v", broken)
			}
			redistest.Eventually(t, 10*time.Second, "a connection", p.connected)
			take("three")
			if next := <-outcomes; next.Failed != 0 || next.Err != nil {
				t.Errorf("the batch after it is counted as %+v", next)
			}
		})
	}
}

// onlyPipeline returns the pipeline of a store with one node.
func onlyPipeline(s *Store) (p *pipeline) {
	for _, n := range s.top.Load().nodes {
		p = n.pipeline
	}
	return p
}

// slowDeadline calls at before a read deadline in the future is set.
type slowDeadline struct {
	net.Conn
	at func()
}

func (c *slowDeadline) SetReadDeadline(t time.Time) error {
	if time.Until(t) > time.Second {
		c.at()
	}
	return c.Conn.SetReadDeadline(t)
}

// TestWakeIsNotLost: a reader in a goroutine notices the next connection, also if that is opened
// while the reader sets its deadline.
func TestWakeIsNotLost(t *testing.T) {
	f := startFake(t, nil, says("-LGFORMAT x\r\n"))
	s, err := Open(t.Context(), Options{Addrs: []string{f.addr()}, IOTimeout: time.Minute, DialTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	p := onlyPipeline(s)
	next, err := p.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan struct{})
	p.conn.Conn = &slowDeadline{Conn: p.conn.Conn, at: sync.OnceFunc(func() {
		go func() { // as prepareNext
			p.mu.Lock()
			p.next = next
			p.conn.wake()
			p.mu.Unlock()
			close(opened)
		}()
		select {
		case <-opened:
		case <-time.After(100 * time.Millisecond): // the reader holds the lock
		}
	})}
	running(t, s)
	_ = p.conn.SetReadDeadline(time.Now()) // so that the reader sets the next one
	redistest.Eventually(t, 10*time.Second, "the replacement", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.conn == next
	})
}
