package rlsxds

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/tlsfiles"
)

// gaps returns the times between the attempts to connect.
func (n *network) gaps() (all []time.Duration) {
	dials := n.dialed()
	for i := 1; i < len(dials); i++ {
		all = append(all, dials[i].Sub(dials[i-1]))
	}
	return all
}

// TestBackoff checks that the pauses between attempts are random, grow, and stay between their bounds, and
// that a server that is away makes one line of the log.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(network)
		c, _, log := newClient(t, n, Options{})
		end := start(t, c)
		time.Sleep(time.Hour)
		end()
		differ := map[time.Duration]bool{}
		for i, d := range n.gaps() {
			differ[d] = true
			least := []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second}[min(i, 2)]
			if d < least || d > min(2*least, DefaultMaxBackoff) {
				t.Errorf("pause %d is %v", i+1, d)
			}
		}
		if len(differ) < 50 {
			t.Errorf("the pauses are %v", n.gaps())
		}
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "loaded=false") || !strings.Contains(text, "connection refused") {
			t.Errorf("the log is %s", text)
		}
	})
}

// TestBackoffBounds checks bounds that are close to each other or reversed.
func TestBackoffBounds(t *testing.T) {
	for _, row := range [][2]time.Duration{{1, 1}, {1, 2}, {5, 1}, {time.Second, time.Second}, {time.Second, 1500 * time.Millisecond}} {
		c, err := New(Options{Server: "h:1", MinBackoff: row[0], MaxBackoff: row[1], Log: discard()})
		if err != nil {
			t.Fatal(err)
		}
		least, most := row[0], max(row[0], row[1])
		for range 100 {
			for _, wait := range []time.Duration{min(2*least, c.options.MaxBackoff), c.options.MaxBackoff} {
				if d := c.pause(wait); d < least || d > most {
					t.Errorf("%v: a pause of %v", row, d)
				}
			}
		}
	}
}

// TestBackoffBegins checks that the pauses begin with the least one after a stream that had an answer, and
// after one that lasted.
func TestBackoffBegins(t *testing.T) {
	for name, play := range map[string]func(s serverStream) error{
		"an answer":       sends(answer("v", "n", "a")),
		"a silent stream": silent(2 * DefaultMaxBackoff),
	} {
		synctest.Test(t, func(t *testing.T) {
			n := new(network)
			n.serve(t, script{play: play})
			c, _, log := newClient(t, n, Options{})
			end := start(t, c)
			time.Sleep(time.Hour)
			if log := log.String(); strings.Count(log, "connected to the xDS server") < 10 || strings.Count(log, "no connection") < 10 || strings.Count(log, "\n") > 60*(2*maxLines+1) {
				t.Errorf("%s: the log is %s", name, log)
			}
			end()
			for i, d := range n.gaps() {
				if d %= 2 * DefaultMaxBackoff; d < 10*time.Second || d > 21*time.Second {
					t.Errorf("%s: pause %d is %v", name, i+1, d)
				}
			}
		})
	}
}

// TestHangingServer checks a server that accepts connections and says nothing.
func TestHangingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(network)
		c, _, _ := newClient(t, n, Options{})
		var closing []net.Conn
		c.dial = func(ctx context.Context, addr string) (net.Conn, error) {
			_, _ = n.dial(ctx, addr)
			ours, theirs := net.Pipe()
			closing = append(closing, theirs)
			return ours, nil
		}
		end := start(t, c)
		time.Sleep(10*time.Minute + time.Second)
		if got := c.Status(); got.Connected || got.Err == nil || len(n.dialed()) < 6 {
			t.Errorf("after %d attempts the status is %+v", len(n.dialed()), got)
		}
		end() // in an attempt, or in a pause
		for _, conn := range closing {
			conn.Close()
		}
	})
}

// TestEnd checks that a client ends while its stream is silent, and in the pause after an update.
func TestEnd(t *testing.T) {
	for _, after := range []time.Duration{0, 1, updatePause / 2, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			n := new(network)
			n.serve(t, script{play: func(s serverStream) error {
				if err := s.Send(answer("v", "n", "a")); err != nil {
					return err
				}
				return keep(s)
			}})
			c, _, _ := newClient(t, n, Options{})
			end := start(t, c)
			time.Sleep(after)
			began := time.Now()
			end()
			if took := time.Since(began); took > time.Second {
				t.Errorf("after %v, the end takes %v", after, took)
			}
		})
	}
}

// TestTLS checks, by TCP, that each connection has a TLS configuration of its own, with a certificate of the
// client, and that the lack of one is an error that ends.
func TestTLS(t *testing.T) {
	authority := redistest.NewAuthority(t)
	cert, key := authority.Issue("localhost", time.Now().Add(time.Hour))
	files, err := tlsfiles.NewServer(tlsfiles.ServerOptions{Cert: cert, Key: key, ClientCA: authority.CA})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	snapshots := newSnapshots(t)
	snapshots.set(t, "1", "a")
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(files.Config())))
	discovery.RegisterAggregatedDiscoveryServiceServer(s, snapshots)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	defer func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()

	var calls atomic.Int64
	c, a, log := newClient(t, nil, Options{
		Server: l.Addr().String(), NodeID: node, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond,
		TLS: func() (*tls.Config, error) {
			o := tlsfiles.ClientOptions{CA: authority.CA}
			switch calls.Add(1) {
			case 1:
				return nil, errors.New("no file yet")
			case 2:
				o.CA = ""
			case 3:
			default:
				o.Cert, o.Key = cert, key
			}
			client, err := tlsfiles.NewClient(o)
			if err != nil {
				return nil, err
			}
			return client.Config("localhost")
		},
	})
	end := start(t, c)
	redistest.Eventually(t, 20*time.Second, "resources", func() bool { return c.Status().Loaded })
	a.expect(t, 1, field("a"))
	text, from := log.String(), 0
	for _, want := range []string{"no file yet", "certificate signed by unknown authority", "no connection", "limits of the xDS server applied"} {
		at := strings.Index(text[from:], want)
		if at < 0 {
			t.Errorf("the log is %s, want %s", text, want)
			break
		}
		from += at + len(want)
	}
	if got := c.Status(); got.Err != nil || calls.Load() != 4 {
		t.Errorf("after %d connections the status is %+v", calls.Load(), got)
	}
	end()
}
