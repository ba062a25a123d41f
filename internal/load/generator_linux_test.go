package load

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// serve accepts connections until the test ends, and calls answer with each.
func serve(t *testing.T, answer func(in *bufio.Reader, out net.Conn)) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, listener, answer)
}

func serveOn(t *testing.T, listener net.Listener, answer func(in *bufio.Reader, out net.Conn)) (addr string) {
	t.Helper()
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				answer(bufio.NewReader(conn), conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// skipRequest reads a request, and returns its last word.
func skipRequest(in *bufio.Reader) (word string, err error) {
	head, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	for range 2 * int(head[1]-'0') {
		if word, err = in.ReadString('\n'); err != nil {
			return "", err
		}
	}
	return strings.TrimSpace(word), nil
}

// each returns an answer that writes one reply for each request.
func each(reply string) func(*bufio.Reader, net.Conn) {
	return func(in *bufio.Reader, out net.Conn) {
		for {
			if _, err := skipRequest(in); err != nil {
				return
			}
			if _, err := io.WriteString(out, reply); err != nil {
				return
			}
		}
	}
}

func dial(t *testing.T, addr string, conns, pipeline int) *Generator {
	t.Helper()
	g, err := Dial(Options{
		Targets: []Target{{Addr: addr, Conns: conns, Keys: Each(10)}},
		Request: NewRequest("RL.CHECK", "t"+Hole), Shape: Decision, Pipeline: pipeline,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func TestSoManyRequestsAreSentAndAllAreAnswered(t *testing.T) {
	addr := serve(t, each(admission))
	for _, test := range []struct {
		conns, pipeline int
		requests        int64
	}{{1, 1, 10}, {3, 16, 1000}, {7, 64, 64}, {5, 4, 3}} {
		outcome, err := dial(t, addr, test.conns, test.pipeline).Run(t.Context(), Load{Requests: test.requests})
		if err != nil {
			t.Fatal(err)
		}
		if outcome.Admitted != test.requests || outcome.From("store") != test.requests || outcome.Latency.TotalCount() != test.requests {
			t.Errorf("%+v: outcome = %+v with %d latencies", test, outcome.Tally, outcome.Latency.TotalCount())
		}
	}
}

func TestKeysAreSentInTheirOrder(t *testing.T) {
	words := make(chan string, 20)
	addr := serve(t, func(in *bufio.Reader, out net.Conn) {
		for {
			word, err := skipRequest(in)
			if err != nil {
				return
			}
			words <- word
			_, _ = io.WriteString(out, admission)
		}
	})
	if _, err := dial(t, addr, 1, 4).Run(t.Context(), Load{Requests: 12}); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		if got, want := <-words, Fill("t"+Hole, uint32(i%10)); got != want {
			t.Errorf("request %d was for %s, want %s", i, got, want)
		}
	}
}

func TestRepliesMayArriveInPieces(t *testing.T) {
	addr := serve(t, func(in *bufio.Reader, out net.Conn) {
		for {
			if _, err := skipRequest(in); err != nil {
				return
			}
			for _, piece := range strings.SplitAfter(denial, ":") {
				if _, err := io.WriteString(out, piece); err != nil {
					return
				}
			}
		}
	})
	outcome, err := dial(t, addr, 2, 5).Run(t.Context(), Load{Requests: 200})
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Denied != 200 || outcome.From("backstop") != 200 {
		t.Errorf("outcome = %+v", outcome.Tally)
	}
}

func TestALoadEndsAfterItsDuration(t *testing.T) {
	outcome, err := dial(t, serve(t, each(admission)), 2, 8).Run(t.Context(), Load{Duration: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Elapsed < 40*time.Millisecond || outcome.Replies == 0 || outcome.Replies%8 != 0 {
		t.Errorf("%d replies in %v", outcome.Replies, outcome.Elapsed)
	}
}

func TestErrorRepliesAreCounted(t *testing.T) {
	outcome, err := dial(t, serve(t, each("-ERR not today\r\n")), 1, 2).Run(t.Context(), Load{Requests: 10})
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Errors != 10 || outcome.FirstError != "ERR not today" {
		t.Errorf("outcome = %+v", outcome.Tally)
	}
}

func TestRunSaysWhyItCouldNotGoOn(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(*bufio.Reader, net.Conn)
		want   string
	}{
		"another shape": {each("+OK\r\n"), "unexpected reply"},
		"too many":      {each(admission + admission), "more replies than requests"},
		"closed":        {func(*bufio.Reader, net.Conn) {}, "connection"},
		"endless":       {each("-" + strings.Repeat("x", inputSize)), "longer than a reply"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dial(t, serve(t, test.answer), 1, 1).Run(t.Context(), Load{Requests: 100})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	addr := serve(t, func(in *bufio.Reader, _ net.Conn) {
		_, _ = skipRequest(in)
		cancel()
		_, _ = io.Copy(io.Discard, in) // never answers
	})
	if _, err := dial(t, addr, 1, 1).Run(ctx, Load{Duration: time.Hour}); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want %v", err, context.Canceled)
	}
}

// TestOpenLoadCountsTheWaitForAStalledServer has a server answer nothing until many
// requests have arrived. A generator that sent the next one only after a reply would see
// one slow request; here all that were due meanwhile are slow.
func TestOpenLoadCountsTheWaitForAStalledServer(t *testing.T) {
	const stalled, rate = 100, 1000
	addr := serve(t, func(in *bufio.Reader, out net.Conn) {
		for n := 1; ; n++ {
			if _, err := skipRequest(in); err != nil {
				return
			}
			switch {
			case n == stalled:
				_, _ = io.WriteString(out, strings.Repeat(admission, stalled))
			case n > stalled:
				_, _ = io.WriteString(out, admission)
			}
		}
	})
	outcome, err := dial(t, addr, 1, 1).Run(t.Context(), Load{Duration: 200 * time.Millisecond, Rate: rate, Slice: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Replies != 200 || len(outcome.Slices) != 4 {
		t.Fatalf("%d replies in %d slices, want 200 in 4", outcome.Replies, len(outcome.Slices))
	}
	// The first half was due within 100 ms and answered at its end: the first 50 of it
	// waited at least for the other 50 ms.
	if got := outcome.Slices[0].Latency.Min(); got < int64(45*time.Millisecond) {
		t.Errorf("a request of the first quarter waited %v", time.Duration(got))
	}
	whole := outcome.Merge(0, 4)
	if whole.Replies != 200 || whole.Latency.TotalCount() != 200 || whole.From("store") != 200 {
		t.Errorf("merged slices = %+v", whole.Tally)
	}
	if got := outcome.Merge(1, 2).Replies; got != 50 {
		t.Errorf("%d requests were due in the second quarter, want 50", got)
	}
}

func TestTargetsAreCountedApart(t *testing.T) {
	g, err := Dial(Options{
		Targets: []Target{
			{Addr: serve(t, each(admission)), Conns: 2, Keys: Hot(1)},
			{Addr: serve(t, each("-ERR not today\r\n")), Conns: 1, Keys: Hot(2)},
		},
		Request: NewRequest("RL.CHECK", "t"+Hole), Shape: Decision, Pipeline: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	outcome, err := g.Run(t.Context(), Load{Duration: 30 * time.Millisecond, Rate: 1000, ByTarget: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(outcome.Targets) != 2 || outcome.Replies != 30 || outcome.Errors != 10 {
		t.Fatalf("outcome = %+v with %d targets", outcome.Tally, len(outcome.Targets))
	}
	if first := &outcome.Targets[0]; first.Admitted != 20 || first.Errors != 0 || first.Latency.TotalCount() != 20 {
		t.Errorf("first target = %+v", first.Tally)
	}
	if second := &outcome.Targets[1]; second.Admitted != 0 || second.Errors != 10 || second.Latency.TotalCount() != 10 {
		t.Errorf("second target = %+v", second.Tally)
	}
}

func TestDialSaysWhatIsWrong(t *testing.T) {
	for name, target := range map[string]Target{
		"no keys":        {Addr: "127.0.0.1:1", Conns: 1},
		"no connections": {Addr: "127.0.0.1:1", Keys: Hot(1)},
		"no address":     {Addr: "localhost", Conns: 1, Keys: Hot(1)},
		"no listener":    {Addr: "127.0.0.1:1", Conns: 1, Keys: Hot(1)},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := Dial(Options{Targets: []Target{target}, Request: NewRequest("PING"), Pipeline: 1})
			if err == nil {
				g.Close()
				t.Error("Dial succeeded")
			}
		})
	}
}
