package commands_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/bypass"
	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

var update = flag.Bool("update", false, "write the expected replies into the transcripts")

// clock is the time of the transcripts.
var clock = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)

// fixedLimits are limits that never change.
type fixedLimits struct{ fail bool }

func (f *fixedLimits) Status() commands.LimitsStatus {
	st := commands.LimitsStatus{Version: "v1", Source: "limits.yaml", Loaded: clock.Add(-time.Minute)}
	if f.fail {
		st.Error = "limits.yaml:1: it is broken"
	}
	return st
}

func (f *fixedLimits) Reload() error {
	if f.fail {
		return fmt.Errorf("limits.yaml:1: it is broken\nlimits.yaml:2: this too")
	}
	return nil
}

func (f *fixedLimits) Promote() error { return f.Reload() }

func (f *fixedLimits) Abort() error { return errors.New("no limits are on trial") }

func newSession(tb testing.TB, h *commands.Handler) *commands.Session {
	tb.Helper()
	s := h.NewSession(commands.Peer{
		ID: 7, Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1234}, Local: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6380},
	})
	tb.Cleanup(s.Close)
	return s
}

// handlerOptions are the parts of a handler in which tests differ.
type handlerOptions struct {
	fail   bool // limits cannot be loaded
	users  *users.Authenticator
	bypass *bypass.Tokens
	now    func() time.Time // nil is clock
	// observer observes decisions; it may be nil.
	observer limiter.Observer
}

// testUsers returns the users of testdata.
func testUsers(tb testing.TB) *users.Authenticator {
	tb.Helper()
	content, err := os.ReadFile("testdata/users.acl")
	if err != nil {
		tb.Fatal(err)
	}
	set, err := users.Parse(content)
	if err != nil {
		tb.Fatal(err)
	}
	return users.NewAuthenticator(set, nil)
}

func newHandler(tb testing.TB, o handlerOptions) *commands.Handler {
	tb.Helper()
	content, err := os.ReadFile("testdata/limits.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	set, _, err := config.ParseLimits("limits.yaml", content, limit.CompileOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	addrs, err := limit.NewAddrHasher([]byte("a secret for tests only"), limit.Prefixes{})
	if err != nil {
		tb.Fatal(err)
	}
	now := o.now
	if now == nil {
		now = func() time.Time { return clock }
	}
	l := limiter.New(limiter.Options{Store: memory.New(memory.Options{}), Addrs: addrs, Timeout: time.Second, Now: now, Observer: o.observer}, set)
	return commands.NewHandler(commands.Options{Limiter: l, Limits: &fixedLimits{o.fail}, Version: "test", Store: "memory", Now: now, Users: o.users, Bypass: o.bypass})
}

// asking returns a function that sends a command in a session of the handler and returns the reply.
func asking(tb testing.TB, h *commands.Handler) func(words ...string) string {
	s := h.NewSession(commands.Peer{})
	return func(words ...string) string {
		var args [][]byte
		for _, w := range words {
			args = append(args, []byte(w))
		}
		reply, _, _ := s.Serve(tb.Context(), [][][]byte{args}, nil)
		return string(reply)
	}
}

// TestTranscripts replays testdata/*.txt, each in RESP2 and RESP3, and compares every
// byte of the replies. A line that begins with > is a command; a line that begins with =
// names the protocol whose expected reply follows.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 4 {
		t.Fatalf("found %d transcripts: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			o := handlerOptions{fail: strings.Contains(file, "stale")}
			if strings.Contains(file, "users") {
				o.users = testUsers(t)
			}
			got := replay(t, want, o)
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got:\n%s", firstDifference(string(got), string(want)))
			}
		})
	}
}

// replay returns the transcript with the replies that the commands get.
func replay(t *testing.T, transcript []byte, o handlerOptions) []byte {
	t.Helper()
	resp2, resp3 := newSession(t, newHandler(t, o)), newSession(t, newHandler(t, o))
	resp3.Serve(context.Background(), words("HELLO 3"), nil)
	var out bytes.Buffer
	for line := range strings.Lines(string(transcript)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "#"), line == "":
			fmt.Fprintln(&out, line)
		case strings.HasPrefix(line, "> "):
			fmt.Fprintln(&out, line)
			two, quit := serveAll(t, resp2, words(line[2:]))
			three, _ := serveAll(t, resp3, words(line[2:]))
			if bytes.Equal(two, three) {
				writeReply(&out, "2 3", two)
			} else {
				writeReply(&out, "2", two)
				writeReply(&out, "3", three)
			}
			if quit {
				fmt.Fprintln(&out, "= closed")
			}
		}
	}
	return out.Bytes()
}

// words splits a line into commands at semicolons, and those into words; a word in double
// quotes may have spaces.
func words(line string) [][][]byte {
	var cmds [][][]byte
	for part := range strings.SplitSeq(line, " ; ") {
		var cmd [][]byte
		for i, piece := range strings.Split(part, `"`) {
			if i%2 == 1 {
				cmd = append(cmd, []byte(piece))
				continue
			}
			for _, w := range strings.Fields(piece) {
				cmd = append(cmd, []byte(w))
			}
		}
		cmds = append(cmds, cmd)
	}
	return cmds
}

func writeReply(out *bytes.Buffer, protocol string, reply []byte) {
	fmt.Fprintf(out, "= RESP%s\n", strings.ReplaceAll(protocol, " ", " RESP"))
	for line := range strings.SplitAfterSeq(string(reply), "\r\n") {
		if line != "" {
			fmt.Fprintf(out, "  %s\n", strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(line))
		}
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			from := max(0, i-3)
			return fmt.Sprintf("line %d:\n%s\nwant:\n%s", i+1, strings.Join(g[from:min(len(g), i+4)], "\n"), strings.Join(w[min(from, len(w)):min(len(w), i+4)], "\n"))
		}
	}
	return "less than wanted"
}

// FuzzServe feeds commands of any words to a session: it must not panic, and must answer
// each with exactly one reply.
func FuzzServe(f *testing.F) {
	for _, line := range []string{
		"RL.CHECK t o 1.2.3.4 1", "RL.CHECK t o - DIM a b", "RL.EXPLAIN t o -", "HELLO 3 AUTH default x SETNAME n", "CLIENT KILL ID 9 SKIPME no",
		"COMMAND DOCS ping", "INFO server", "CONFIG GET *", "RL.RESET t", "RL.LIMITS", "rl.check", "CLIENT SETINFO LIB-NAME x",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		s := newSession(t, newHandler(t, handlerOptions{}))
		cmds := words(line)
		if len(cmds[0]) == 0 || len(cmds[0]) > 1 && strings.EqualFold(string(cmds[0][0]), "client") && strings.EqualFold(string(cmds[0][1]), "reply") {
			return // CLIENT REPLY may have none
		}
		for _, protocol := range []string{"2", "3"} {
			s.Serve(context.Background(), words("HELLO "+protocol), nil)
			reply, _, _ := s.Serve(context.Background(), cmds[:1], nil)
			if rest, ok := skipReply(reply); !ok || len(rest) > 0 {
				t.Fatalf("%q is not one reply to %q", reply, line)
			}
		}
	})
}

// skipReply returns the bytes after the first reply in b.
func skipReply(b []byte) (rest []byte, ok bool) {
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || len(line) == 0 {
		return nil, false
	}
	n := 0
	if strings.IndexByte("$=*%~", line[0]) >= 0 {
		if _, err := fmt.Sscan(string(line[1:]), &n); err != nil {
			return nil, false
		}
	}
	switch line[0] {
	case '+', '-', ':', '_':
		return rest, true
	case '$', '=':
		if n < 0 {
			return rest, true
		}
		if len(rest) < n+2 || string(rest[n:n+2]) != "\r\n" {
			return nil, false
		}
		return rest[n+2:], true
	case '%':
		n *= 2
	case '*', '~':
	default:
		return nil, false
	}
	for range n {
		if rest, ok = skipReply(rest); !ok {
			return nil, false
		}
	}
	return rest, true
}

// serveAll answers a pipeline as an event loop does.
func serveAll(tb testing.TB, s *commands.Session, cmds [][][]byte) (replies []byte, quit bool) {
	tb.Helper()
	replies, rest := serveFast(s, cmds)
	others, quit := serveOthers(tb, s, rest)
	return append(replies, others...), quit
}

// serveOthers answers a pipeline without the fast path, in as many calls as it takes.
func serveOthers(tb testing.TB, s *commands.Session, cmds [][][]byte) (replies []byte, quit bool) {
	tb.Helper()
	for len(cmds) > 0 {
		reply, served, quit := s.Serve(context.Background(), cmds, nil)
		if replies = append(replies, reply...); quit {
			return replies, true
		}
		if served < 1 || served > len(cmds) {
			tb.Fatalf("%d of %d commands served", served, len(cmds))
		}
		cmds = cmds[served:]
	}
	return replies, false
}

// serveFast answers the first commands as an event loop does, as far as Fast answers them, and
// returns the rest.
func serveFast(s *commands.Session, cmds [][][]byte) (replies []byte, rest [][][]byte) {
	if !s.BeginFast() {
		return nil, cmds
	}
	var last []byte
	for len(cmds) > 0 {
		reply, ok := s.Fast(cmds[0], replies)
		if !ok {
			break
		}
		replies, last, cmds = reply, cmds[0][0], cmds[1:]
	}
	s.EndFast(last)
	return replies, cmds
}

// TestOutputIsBounded: a pipeline whose replies are far larger than itself is answered a
// piece at a time, and a transaction, which has a single reply, ends in errors.
func TestOutputIsBounded(t *testing.T) {
	s := newSession(t, newHandler(t, handlerOptions{}))
	const most = 2 * 64 << 10
	for _, line := range []string{"RL.LIMITS", "COMMAND DOCS", "INFO"} {
		one, _ := serveAll(t, s, words(line))
		var cmds [][][]byte
		for range 1000 {
			cmds = append(cmds, words(line)[0])
		}
		answered := 0
		for len(cmds) > 0 {
			reply, served, _ := s.Serve(context.Background(), cmds, nil)
			if len(reply) > most || served > 1 && len(reply) < len(one) {
				t.Fatalf("%d bytes of replies to %d %s", len(reply), served, line)
			}
			cmds = cmds[served:]
			answered += len(reply)
		}
		if answered < 990*len(one) {
			t.Errorf("%d bytes for 1,000 %s of %d", answered, line, len(one))
		}
	}
	cmds := words("MULTI")
	for range 1000 {
		cmds = append(cmds, words("COMMAND DOCS")[0])
	}
	cmds = append(cmds, words("RL.CHECK t - -")[0], words("EXEC")[0])
	reply, _ := serveAll(t, s, cmds)
	if len(reply) > 2<<20 {
		t.Errorf("%d bytes of replies", len(reply))
	}
	if !bytes.Contains(reply, []byte("-ERR the reply to this transaction exceeds")) || !bytes.HasSuffix(reply, []byte("store\r\n")) {
		t.Errorf("the end is %q", reply[max(0, len(reply)-300):])
	}
}

// TestLongAfterHangUp: a long command is not started for a client that may be gone; the
// rest of its pipeline is answered.
func TestLongAfterHangUp(t *testing.T) {
	s := newSession(t, newHandler(t, handlerOptions{}))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, line := range []string{"RL.RESET t", "RL.LIMITS", "CLIENT LIST"} {
		if got, _, _ := s.Serve(ctx, words(line), nil); !bytes.HasPrefix(got, []byte("-ERR not run")) {
			t.Errorf("%s: %q", line, got)
		}
	}
	for _, line := range []string{"PING", "RL.CHECK t - -", "RL.PEEK t - -", "DEL k", "INFO", "COMMAND DOCS ping"} {
		if got, _, _ := s.Serve(ctx, words(line), nil); len(got) == 0 || got[0] == '-' {
			t.Errorf("%s: %q", line, got)
		}
	}
}

// TestMalformedChecksKeepNothing: dimensions of rejected checks are released at once.
func TestMalformedChecksKeepNothing(t *testing.T) {
	s := newSession(t, newHandler(t, handlerOptions{}))
	bad := words("RL.CHECK t o - DIM a b DIM c d DIM")
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	out := make([]byte, 0, 64)
	s.Serve(context.Background(), bad, out)
	before := heap()
	for range 300_000 {
		s.Serve(context.Background(), bad, out)
	}
	if after := heap(); after > before+4<<20 {
		t.Errorf("300,000 refused checks keep %d bytes", after-before)
	}
}
