//go:build long

package integration

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	idleConns  = 10_000
	slowConns  = 1_000 // readers, and as many writers
	churnRate  = 1_000 // connections a second
	crowdTime  = 30 * time.Second
	idleBudget = 20 // KiB that an idle connection may take
)

// connectMany opens so many connections to a proxy, each of which has received a reply.
func connectMany(t *testing.T, p *proxy, n int) []net.Conn {
	t.Helper()
	conns := make([]net.Conn, n)
	for i := range conns {
		c, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		conns[i] = c
		mustExchange(t, c, "PING\r\n", "+PONG\r\n")
	}
	return conns
}

// mustExchange sends text and reads the reply.
func mustExchange(t *testing.T, c net.Conn, text, answer string) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(startTimeout))
	got := make([]byte, len(answer))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, got); err != nil || string(got) != answer {
		t.Fatalf("%q is answered %q, %v", text, got, err)
	}
}

// TestLongCrowds: a proxy has 10,000 idle connections, 1,000 clients that request much
// and read nothing, 1,000 that write a byte a second, and 1,000 new connections a second.
// It still serves all other clients, its memory is bounded, and at the end it has as many
// goroutines as before.
func TestLongCrowds(t *testing.T) {
	p := serve(t, "", append([]string{"--max-conns", "16000"}, exact...)...)
	connectMany(t, p, 1) // the loop starts with the first connection
	calmDown := p.footprint(t).goroutines
	before := p.peakRSS()
	idle := connectMany(t, p, idleConns)
	perConn := float64(p.peakRSS()-before) / idleConns
	t.Logf("%d idle connections take %.1f KiB each", idleConns, perConn)
	if perConn > idleBudget {
		t.Errorf("an idle connection takes %.1f KiB, at most %d are allowed", perConn, idleBudget)
	}
	slow := slowClients(t, p)
	asked, worst := churn(t, p)
	t.Logf("%d connections were made, asked and closed in %s, the slowest in %s; %d MiB at the most",
		asked, crowdTime, worst, p.peakRSS()/1024)
	if asked < churnRate*int(crowdTime.Seconds())/2 {
		t.Errorf("only %d connections could be made in %s", asked, crowdTime)
	}
	// Each of the clients that do not read may have 1 MiB of pending replies, one more
	// reply that was begun below that, and the quarter by which a buffer grows.
	if rss := p.peakRSS() / 1024; rss > 1400 {
		t.Errorf("%d MiB resident", rss)
	}
	for _, c := range append(idle, slow...) {
		_ = c.Close()
	}
	eventually(t, "as many goroutines as before", func() bool { return p.footprint(t).goroutines <= calmDown })
}

// slowClients are the clients that request much and do not read, and those that write
// slowly.
func slowClients(t *testing.T, p *proxy) []net.Conn {
	t.Helper()
	greedy := strings.Repeat("COMMAND\r\n", 20)
	conns := connectMany(t, p, 2*slowConns)
	for _, c := range conns[:slowConns] {
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		if _, err := io.WriteString(c, greedy); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	t.Cleanup(func() { close(stop); wg.Wait() })
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for word := bulk("RL.CHECK", "slow", "-", "-"); word != ""; word = word[1:] {
			for _, c := range conns[slowConns:] {
				_, _ = c.Write([]byte(word[:1]))
			}
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	})
	return conns
}

// churn opens connections at churnRate, sends a request on each and closes it. It returns
// how many got a reply, and how long the slowest took.
func churn(t *testing.T, p *proxy) (answered int, worst time.Duration) {
	t.Helper()
	var n, slowest atomic.Int64
	var wg sync.WaitGroup
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(crowdTime); time.Now().Before(end); {
		<-tick.C
		for range churnRate / 100 {
			wg.Go(func() {
				began := time.Now()
				c, err := net.Dial("tcp", p.addr)
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = c.Close() }()
				_ = c.SetDeadline(began.Add(startTimeout))
				head := make([]byte, 4)
				if _, err := io.WriteString(c, bulk("RL.CHECK", fmt.Sprint("churn", n.Add(1)), "-", "-")); err != nil {
					t.Error(err)
				} else if _, err := io.ReadFull(c, head); err != nil || string(head) != "*7\r\n" {
					t.Errorf("answered %q, %v", head, err)
				}
				if took := int64(time.Since(began)); took > slowest.Load() {
					slowest.Store(took)
				}
			})
		}
	}
	wg.Wait()
	return int(n.Load()), time.Duration(slowest.Load())
}
