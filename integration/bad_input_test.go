package integration

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// dial opens a raw connection to the proxy.
func (p *proxy) dial() net.Conn {
	p.tb.Helper()
	c, err := net.DialTimeout("tcp", p.addr, startTimeout)
	if err != nil {
		p.tb.Fatal(err)
	}
	p.tb.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(startTimeout))
	return c
}

// peakRSS returns the process's largest resident size so far, in KiB.
func (p *proxy) peakRSS() int {
	p.tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.tb.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		p.tb.Fatalf("no VmHWM in %s", status)
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

// bulk is an array of bulk strings.
func bulk(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// TestBadInputRefused sends the inputs that protocol.md lists as refused, and checks on
// the same connection that the proxy still answers.
func TestBadInputRefused(t *testing.T) {
	p := serve(t, "", exact...)
	c := p.dial()
	long := strings.Repeat("x", 257)
	for _, row := range []struct{ command, want string }{
		{bulk("RL.CHECK"), "-ERR wrong number of arguments for 'rl.check' command: RL.CHECK tenant op ip [cost] [DIM name value [DIM name value ...]] [ID id] [HEADERS] [BYPASS token]"},
		{bulk("RL.CHECK", "t", "203.0.113.7"), "-ERR wrong number of arguments for 'rl.check' command: the op is missing: RL.CHECK tenant op ip [cost] [DIM name value [DIM name value ...]] [ID id] [HEADERS] [BYPASS token]"},
		{bulk("RL.CHECK", "t", "o"), "-ERR wrong number of arguments for 'rl.check' command: the ip (- for none) is missing: RL.CHECK tenant op ip [cost] [DIM name value [DIM name value ...]] [ID id] [HEADERS] [BYPASS token]"},
		{bulk("RL.CHECK", "", "o", "-"), "-ERR invalid tenant '': it is empty"},
		{bulk("RL.CHECK", "-", "o", "-"), "-ERR tenant required: name one, as - works only for a user of one tenant"},
		{bulk("RL.CHECK", long, "o", "-"), "-ERR invalid tenant '" + long[:64] + "...': it has 257 bytes, at most 256"},
		{bulk("RL.CHECK", "a\x00b", "o", "-"), `-ERR invalid tenant 'a\x00b': it has control characters`},
		{bulk("RL.CHECK", "a\r\nb", "o", "-"), `-ERR invalid tenant 'a\x0d\x0ab': it has control characters`},
		{bulk("RL.CHECK", "\xff\xfe", "o", "-"), `-ERR invalid tenant '\xff\xfe': it is not UTF-8`},
		{bulk("RL.CHECK", "t", "", "-"), "-ERR invalid op '': it is empty, - stands for none"},
		{bulk("RL.CHECK", "t", strings.Repeat("o", 1025), "-"), "-ERR invalid op '" + strings.Repeat("o", 64) + "...': it has 1025 bytes, at most 1024"},
		{bulk("RL.CHECK", "t", "o", ""), "-ERR invalid ip '': it is not an IPv4 or IPv6 address, - stands for none"},
		{bulk("RL.CHECK", "t", "GET", "/x", "1.2.3.4"), `-ERR invalid ip '/x': it is not an IPv4 or IPv6 address; quote an op that has a space: "GET /x"`},
		{bulk("RL.CHECK", "t", "o", "1.2.3"), "-ERR invalid ip '1.2.3': it is not an IPv4 or IPv6 address"},
		{bulk("RL.CHECK", "t", "o", "fe80::1%eth0"), "-ERR invalid ip 'fe80::1%eth0': an address with a zone means nothing outside its host"},
		{bulk("RL.CHECK", "t", "o", "-", "0"), "-ERR cost must be an integer between 1 and 2147483647; RL.PEEK takes nothing"},
		{bulk("RL.CHECK", "t", "o", "-", "-1"), "-ERR cost must be an integer between 1 and 2147483647; RL.REFUND returns units"},
		{bulk("RL.CHECK", "t", "o", "-", "1e3"), "-ERR cost must be an integer between 1 and 2147483647"},
		{bulk("RL.CHECK", "t", "o", "-", "9223372036854775808"), "-ERR cost must be an integer between 1 and 2147483647"},
		{bulk("RL.CHECK", "t", "o", "-", "2147483648"), "-ERR cost must be an integer between 1 and 2147483647"},
		{bulk("RL.CHECK", "t", "o", "-", "01"), "-ERR cost must be an integer between 1 and 2147483647"},
		{bulk("RL.CHECK", "t", "o", "-", "1", "WHAT"), "-ERR invalid option 'WHAT': the options here are DIM name value, ID id, HEADERS, BYPASS token"},
		{bulk("RL.CHECK", "t", "o", "-", "WHAT", "1"), "-ERR invalid option 'WHAT': the options here are DIM name value, ID id, HEADERS, BYPASS token; did you mean DIM WHAT 1?"},
		{bulk("RL.CHECK", "t", "o", "-", "DIM", "user"), "-ERR syntax error: DIM needs a name and a value behind it"},
		{bulk("RL.CHECK", "t", "o", "-", "DIM", "user", "u", "region", "eu"), "-ERR invalid option 'region': DIM stands before every name and value"},
		{bulk("RL.CHECK", "t", "o", "-", "DIM", "", "u"), "-ERR invalid dimension name '': it is empty"},
		{bulk("RL.CHECK", "t", "o", "-", "DIM", "ip", "u"), "-ERR invalid dimension name 'ip': tenant, op and ip stand in front, without DIM"},
		{bulk("RL.CHECK", "t", "o", "-", "DIM", "user", ""), "-ERR invalid dimension value '': it is empty"},
		{bulk("RL.CHECK", "t", "o", "-", "DIM", "u", "1", "dim", "u", "2"), "-ERR invalid dimension 'u': it is there twice"},
		{bulk(append([]string{"RL.CHECK", "t", "o", "-"}, manyDims(17)...)...), "-ERR invalid number of dimensions: at most 16"},
		{bulk("RL.NOPE", "a", "b"), "-ERR unknown command 'RL.NOPE', with args beginning with: 'a' 'b' ; RL.HELP lists the commands"},
		{bulk("RL.RESET", "-"), "-ERR limit_id required: RL.RESET - limit_id"},
		{bulk("SELECT", "1"), "-ERR DB index is out of range: there is database 0 alone"},
		{bulk("HELLO", "4"), "-NOPROTO unsupported protocol version"},
	} {
		if got := exchange(t, c, row.command); got != row.want {
			t.Errorf("%q:\ngot  %s\nwant %s", row.command, got, row.want)
		}
	}
	for _, accepted := range []string{
		bulk("RL.CHECK", "a{b}%:c", "o{p}", "::ffff:203.0.113.7", "2147483647"),
		bulk("rl.check", "t", "-", "-", "dim", "User", "x"),
		"RL.CHECK t o - 1\r\n",
	} {
		if got := exchange(t, c, accepted); got != "*7" {
			t.Errorf("%q: got %s, want a decision", accepted, got)
		}
		drain(t, c, accepted)
	}
	if got := exchange(t, c, bulk("PING")); got != "+PONG" {
		t.Errorf("afterwards PING answers %s", got)
	}
}

func manyDims(n int) []string {
	var out []string
	for i := range n {
		out = append(out, "DIM", fmt.Sprint("d", i), "v")
	}
	return out
}

// exchange sends a command and returns the first line of the reply.
func exchange(t *testing.T, c net.Conn, command string) string {
	t.Helper()
	if _, err := io.WriteString(c, command); err != nil {
		t.Fatal(err)
	}
	return readLine(t, c)
}

// drain reads the rest of a decision: five integers and two bulk strings.
func drain(t *testing.T, c net.Conn, what string) {
	t.Helper()
	for i := range 9 {
		if line := readLine(t, c); line == "" && i != 6 {
			t.Errorf("%q: line %d of the decision is empty", what, i)
		}
	}
}

func readLine(t *testing.T, c net.Conn) string {
	t.Helper()
	var line []byte
	var b [1]byte
	for {
		if _, err := io.ReadFull(c, b[:]); err != nil {
			t.Fatalf("read reply: %v after %q", err, line)
		}
		if b[0] == '\n' {
			return strings.TrimSuffix(string(line), "\r")
		}
		line = append(line, b[0])
	}
}

// TestBadInputHostile sends input that no client sends: each gets an error or a closed
// connection, costs bounded memory, and does not affect other clients.
func TestBadInputHostile(t *testing.T) {
	p := serve(t, "", exact...)
	victim := p.dial()
	before := p.peakRSS()
	endless := strings.NewReader(strings.Repeat("x", 64<<20))
	for _, row := range []struct {
		name  string
		input io.Reader
		want  string // the beginning of the reply
	}{
		{"a bulk of 2 GiB", strings.NewReader("*1\r\n$2147483648\r\n"), "-ERR Protocol error: invalid bulk length"},
		{"a bulk of 2^63-1", strings.NewReader("*1\r\n$9223372036854775807\r\n"), "-ERR Protocol error: invalid bulk length"},
		{"an array of 10^9", strings.NewReader("*1000000000\r\n"), "-ERR Protocol error: invalid multibulk length"},
		{"an array of 2^63-1", strings.NewReader("*9223372036854775807\r\n"), "-ERR Protocol error: invalid multibulk length"},
		{"a negative bulk", strings.NewReader("*1\r\n$-5\r\n"), "-ERR Protocol error: invalid bulk length"},
		{"no dollar", strings.NewReader("*1\r\n:5\r\n"), "-ERR Protocol error: expected '$', got ':'"},
		{"a line without end", endless, "-ERR Protocol error: too big inline request"},
		{"a length without end", strings.NewReader("*" + strings.Repeat("1", 70_000)), "-ERR Protocol error: too big mbulk count string"},
		{"an HTTP request", strings.NewReader("POST / HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.0 400 Bad Request\r\n"},
		{"a Host header", strings.NewReader("Host: x\r\n"), "HTTP/1.0 400 Bad Request\r\n"},
		{"a quote without end", strings.NewReader("PING \"x\r\n"), "-ERR Protocol error: unbalanced quotes in request"},
	} {
		c := p.dial()
		go func() { _, _ = io.Copy(c, row.input) }()
		answer, _ := io.ReadAll(io.LimitReader(c, 4096))
		if !bytes.HasPrefix(answer, []byte(row.want)) {
			t.Errorf("%s: answered %q, want %q", row.name, answer, row.want)
		}
		if got := exchange(t, victim, bulk("PING")); got != "+PONG" {
			t.Fatalf("%s: the next client got %q", row.name, got)
		}
	}
	after := p.peakRSS()
	t.Logf("peak RSS before %d KiB, after %d KiB", before, after)
	if after-before > 64<<10 {
		t.Errorf("hostile input cost %d KiB", after-before)
	}
}

// TestSlowClients: a client that never reads and one that never finishes its command do
// not affect other clients, and cost bounded memory.
func TestSlowClients(t *testing.T) {
	p := serve(t, "", exact...)
	victim := p.dial()
	half := p.dial()
	if _, err := io.WriteString(half, "*5\r\n$8\r\nRL.CHE"); err != nil {
		t.Fatal(err)
	}
	deaf := p.dial()
	_ = deaf.SetWriteDeadline(time.Now().Add(2 * time.Second))
	flood := strings.Repeat(bulk("RL.CHECK", "t", "o", "-"), 1000)
	sent := 0
	for sent < 256<<20 {
		n, err := io.WriteString(deaf, flood)
		sent += n
		if err != nil {
			break // its window is full: the proxy has stopped reading
		}
	}
	if got := exchange(t, victim, bulk("PING")); got != "+PONG" {
		t.Errorf("another client got %q", got)
	}
	t.Logf("the proxy took %d KiB from a client that never reads; peak RSS %d KiB", sent>>10, p.peakRSS())
	if sent >= 256<<20 || p.peakRSS() > 256<<10 {
		t.Errorf("it took %d bytes, peak RSS %d KiB", sent, p.peakRSS())
	}
}
