package cluster

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
)

// openThrough returns a store that runs until the test ends, whose pipelines use sockets
// wrapped by wrap.
func openThrough(t *testing.T, opts Options, wrap func(Socket) Socket, addrs ...string) *Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	opts.Addrs, opts.DialTimeout = addrs, 5*time.Second
	if opts.IOTimeout == 0 {
		opts.IOTimeout = 5 * time.Second
	}
	opts.ToLoop = func(conn *net.TCPConn) (Socket, error) {
		_ = conn.SetWriteBuffer(4 << 10) // so that a few batches fill it
		s, err := toLoop(conn)
		return wrap(s), err
	}
	s, err := Open(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	running(t, s)
	for _, n := range s.top.Load().nodes {
		redistest.Eventually(t, 10*time.Second, "a connection", func() bool {
			n.pipeline.mu.Lock()
			defer n.pipeline.mu.Unlock()
			return n.pipeline.conn != nil
		})
	}
	return s
}

// forgetful makes some commands fail with NOSCRIPT: it replaces their script by one that
// was never loaded. It leaves writes that load the script unchanged.
type forgetful struct{ Socket }

func (c forgetful) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("\r\nLOAD\r\n")) {
		return c.Socket.Write(b)
	}
	return c.Socket.Write(withoutScript(b, func() bool { return rand.IntN(3) == 0 }))
}

// evalSHA is the start of a call of a script, before its hash.
const evalSHA = "\r\nEVALSHA\r\n$40\r\n"

// withoutScript returns a copy of sent in which the chosen calls name a script that Redis
// does not have.
func withoutScript(sent []byte, chosen func() bool) []byte {
	sent = bytes.Clone(sent)
	for rest := sent; ; {
		i := bytes.Index(rest, []byte(evalSHA))
		if i < 0 {
			return sent
		}
		rest = rest[i+len(evalSHA):]
		if chosen() {
			copy(rest, strings.Repeat("0", 40))
		}
	}
}

// TestSomeScriptsMissing checks that any command of a batch may fail with NOSCRIPT while
// others run. Each runs once in the end, none stays undecided, and the order of each
// connection is kept.
func TestSomeScriptsMissing(t *testing.T) {
	seed := storetest.Seed(t)
	eachWay(t, ways, func(t *testing.T, c *redistest.Cluster, opts Options) { someScriptsMissing(t, c, opts, seed, 10) })
}

func someScriptsMissing(t *testing.T, c *redistest.Cluster, opts Options, seed uint64, histories int) {
	t.Helper()
	s := openThrough(t, opts, func(s Socket) Socket { return forgetful{s} }, c.Addrs()...)
	storetest.SerialOrderWithoutIDs(t, s, seed, histories)
	ld := startLoad(t, s, 5*time.Second, someTenants(t, 12)...)
	ld.advance(200 * loadPipeline)
	if excess := ld.balance(); excess != 0 {
		t.Errorf("the buckets have lost %d units more than were admitted", excess)
	}
	if n, st := ld.backstop.total(), s.Stats(); n > 0 || st.ScriptLoads == 0 {
		t.Errorf("%d calls were left undecided: %+v", n, st)
	}
}

// flushed makes a number of batches fail with NOSCRIPT, including those that load the
// script.
type flushed struct {
	Socket
	times *atomic.Int64
}

func (c flushed) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(evalSHA)) && c.times.Add(-1) >= 0 {
		b = withoutScript(b, func() bool { return true })
	}
	return c.Socket.Write(b)
}

// TestScriptFlushedAgain checks that a script flushed between its loading and the call is
// loaded again, a few times, and that the calls stay undecided after that: the node is
// healthy.
func TestScriptFlushedAgain(t *testing.T) {
	var times atomic.Int64
	node := redistest.SharedNode(t)
	s := openThrough(t, Options{}, func(s Socket) Socket { return flushed{s, &times} }, node.Addr)
	set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000/366d"})
	for flushes, want := range map[int64]limit.Source{1: limit.SourceStore, 3: limit.SourceStore, maxResends: limit.SourceStore, maxResends + 1: limit.SourceNone} {
		times.Store(flushes)
		var b limit.Buffer
		set.Resolve(&limit.Request{Tenant: fmt.Sprint("flushed-", flushes), Cost: 1}, testAddrs, 0, &b)
		s.Take(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
		if got := b.Items[0].Source; got != want {
			t.Errorf("%d flushes: decided by %s, want %s", flushes, got, want)
		}
	}
	if st := s.Stats(); st.Undecided[KindNoScript] != 1 || st.Undecided[KindOther] != 0 {
		t.Errorf("counted: %v", st.Undecided)
	}
	for _, n := range s.top.Load().nodes {
		if n.breaker.Status().Err != nil {
			t.Errorf("the breaker counts %v", n.breaker.Status().Err)
		}
	}
}
