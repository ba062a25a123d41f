package integration

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/isolation"
	"github.com/limitgate/limitgate/internal/redistest"
)

const (
	// isolationRound is the number of commands after which the counters are deleted: no
	// reservation and no id ends by time within so many.
	isolationRound = 1500
	// isolationPipeline is the largest number of commands that are sent together.
	isolationPipeline = 25
	// isolationPeriod is that of all limits, in seconds: no unit returns during a test.
	isolationPeriod = 300 * 24 * 3600
	isolationLimits = `
version: 1
default_plan: free
plans:
  free:
    - {id: tenant, by: [tenant], rate: 200/300d, burst: 200, on_error: open}
    - {id: payments, by: [tenant, op], when: {op: "POST /pay*"}, rate: 30/300d, algorithm: sliding_window, on_error: closed}
    - {id: quota, by: [tenant], group: quota, rate: 300/300d, algorithm: fixed_window, on_error: open}
    - {id: trial, by: [tenant, user], rate: 1/300d, mode: shadow, on_error: open}
    - {id: inflight, by: [tenant], algorithm: concurrency, slots: 3, on_error: open}
shared:
  - {id: ip, by: [ip], rate: 100/300d, on_error: open}
`
)

// userConn is a connection of a user, whose replies are kept as bytes.
type userConn struct {
	net.Conn
	in *bufio.Reader
}

func dialUser(t *testing.T, p *proxy) *userConn {
	t.Helper()
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &userConn{conn, bufio.NewReader(conn)}
}

// roundTrip sends commands together, and returns their replies.
func (c *userConn) roundTrip(commands [][]string) (replies [][]byte, err error) {
	var out []byte
	for _, words := range commands {
		out = fmt.Appendf(out, "*%d\r\n", len(words))
		for _, word := range words {
			out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write(out); err != nil {
		return nil, err
	}
	for range commands {
		reply, err := appendReply(nil, c.in)
		if err != nil {
			return replies, err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

// appendReply reads one reply of RESP2.
func appendReply(to []byte, in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return to, err
	}
	to = append(to, line...)
	if line[0] != '$' && line[0] != '*' {
		return to, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	if err != nil || n < 0 {
		return to, err
	}
	if line[0] == '$' {
		text := make([]byte, n+2)
		_, err := io.ReadFull(in, text)
		return append(to, text...), err
	}
	for range n {
		if to, err = appendReply(to, in); err != nil {
			return to, err
		}
	}
	return to, nil
}

// neighbours are the users of a proxy over a cluster.
type neighbours struct {
	cluster *redistest.Cluster
	limits  string
	flags   []string
	// cached means that the proxy remembers denials. It depends on the time whether it does, and
	// so which of the limits that deny a reply names.
	cached bool
	// admin means that the other user may do everything for all tenants, such as closing
	// connections, its own too.
	admin  bool
	count  int            // of the commands that were compared
	served map[string]int // those without an error, by name
	beside atomic.Int64   // the commands of the other user
}

// newNeighbours returns the users of a file.
func newNeighbours(t *testing.T, users string, cached bool) *neighbours {
	t.Helper()
	c, file, secret := redistest.SharedCluster(t), filepath.Join(t.TempDir(), "users.acl"), filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(file, []byte(users), 0o600), os.WriteFile(secret, bytes.Repeat([]byte("s"), 32), 0o600)); err != nil {
		t.Fatal(err)
	}
	flags := append(slices.Clone(exact), "--redis", strings.Join(c.Addrs(), ","), "--users", file, "--privacy-ip-max-ttl", "8760h", "--privacy-ip-secret-file", secret)
	if !cached {
		flags = append(flags, "--deny-cache-size", "0")
	}
	return &neighbours{cluster: c, limits: writeLimits(t, isolationLimits), flags: flags, cached: cached, served: map[string]int{}}
}

// replies returns the comparable replies to n random commands of the first user, with the
// commands, from a proxy without history. The other user is beside it, or not.
func (n *neighbours) replies(t *testing.T, seed uint64, commands int, beside bool) (all []string) {
	t.Helper()
	n.cluster.FlushAll(t)
	p := serve(t, n.limits, n.flags...)
	defer func() { _ = p.stop(syscall.SIGTERM) }()
	first := dialUser(t, p)
	g := isolation.Generator{Names: n.names(t, first), Period: strconv.Itoa(isolationPeriod)}
	if beside {
		defer n.besides(t, p, &g)()
	}
	r := rand.New(rand.NewPCG(seed, 0))
	for len(all) < commands {
		words := randomPipeline(r, &g, 0)
		replies, err := first.roundTrip(words)
		for i, reply := range replies {
			if reply[0] != '-' {
				n.served[words[i][0]]++
			}
			all = append(all, fmt.Sprintf("%q: %q", words[i], n.comparable(words[i][0], reply)))
		}
		if err != nil {
			return append(all, fmt.Sprintf("%q: %v", words[len(replies)], err))
		}
	}
	return all
}

// names authenticates the first user, and returns the names of all commands.
func (n *neighbours) names(t *testing.T, c *userConn) (names []string) {
	t.Helper()
	replies, err := c.roundTrip([][]string{{"AUTH", isolation.Tenants[0], isolation.Tenants[0]}, {"COMMAND", "LIST"}})
	if err != nil || string(replies[0]) != "+OK\r\n" {
		t.Fatalf("%q, %v", replies, err)
	}
	for line := range strings.SplitSeq(string(replies[1]), "\r\n") {
		if line != "" && line[0] != '*' && line[0] != '$' && !strings.Contains(line, "|") {
			names = append(names, line)
		}
	}
	slices.Sort(names)
	if len(names) < 40 {
		t.Fatalf("%d commands", len(names))
	}
	for _, name := range slices.Clone(names) {
		if strings.HasPrefix(name, "rl.") || strings.Contains(name, "throttle") || name == "gcra" {
			names = append(names, name, name, name) // the others are more numerous
		}
	}
	return names
}

// randomPipeline returns commands of a user. It begins with those that end a transaction or a
// RESET of the pipeline before.
func randomPipeline(r *rand.Rand, g *isolation.Generator, user int) [][]string {
	name := isolation.Tenants[user]
	words := [][]string{{"DISCARD"}, {"AUTH", name, name}}
	for range 1 + r.IntN(isolationPipeline) {
		words = append(words, g.Command(r, user))
	}
	return words
}

// besides makes the second user send random commands over some connections, until the
// returned function is called.
func (n *neighbours) besides(t *testing.T, p *proxy, g *isolation.Generator) (stop func()) {
	t.Helper()
	var wg sync.WaitGroup
	var stopped atomic.Bool
	var admitted atomic.Int64
	for i := range 2 {
		c := dialUser(t, p)
		wg.Go(func() {
			for r := rand.New(rand.NewPCG(rand.Uint64(), uint64(i))); !stopped.Load(); {
				words := randomPipeline(r, g, 1)
				replies, err := c.roundTrip(words)
				if err != nil {
					if !n.admin {
						t.Errorf("beside: %q: %v", words, err)
					}
					return
				}
				n.beside.Add(int64(len(replies)))
				for _, reply := range replies {
					if bytes.HasPrefix(reply, []byte("*7\r\n:1\r\n")) {
						admitted.Add(1)
					}
				}
			}
		})
	}
	return func() {
		stopped.Store(true)
		wg.Wait()
		if admitted.Load() == 0 && !n.admin {
			t.Error("beside: no command is admitted")
		}
	}
}

var (
	// longTimes are the times in replies, which are longer than any number of units.
	longTimes = regexp.MustCompile(`:\d{5,}\r\n`)
	// clientInfo is the part of a reply to CLIENT INFO that depends on the connection.
	clientInfo = regexp.MustCompile(`^\$\d+\r\n(id=\d+) addr=\S+ laddr=\S+ (.*) age=\d+ idle=\d+`)
	// denial is the beginning of a decision that denies, and explainedDenial of its explanation.
	denial          = regexp.MustCompile(`^\*[78]\r\n:0\r\n`)
	explainedDenial = regexp.MustCompile(`^\*20\r\n\$7\r\nallowed\r\n:0\r\n`)
)

// comparable returns the part of a reply that must not depend on time or on other users.
func (n *neighbours) comparable(name string, reply []byte) []byte {
	reply = longTimes.ReplaceAll(isolation.Comparable(name, reply), []byte(":time\r\n"))
	reply = clientInfo.ReplaceAll(reply, []byte("$1 $2"))
	for _, form := range []*regexp.Regexp{denial, explainedDenial} {
		if found := form.Find(reply); n.cached && found != nil {
			return found
		}
	}
	return reply
}

// compare compares the replies to the first user beside the other one with those that it gets
// alone, and returns the first difference, or "".
func (n *neighbours) compare(t *testing.T, seed uint64, commands int) string {
	t.Helper()
	alone, beside := n.replies(t, seed, commands, false), n.replies(t, seed, commands, true)
	n.count += len(alone)
	for i := range min(len(alone), len(beside)) { // a connection may have ended
		if alone[i] != beside[i] {
			return fmt.Sprintf("command %d of seed %d, alone:\n%s\nbeside the other user:\n%s", i, seed, alone[i], beside[i])
		}
	}
	return ""
}

// isolatedCommands are those that a user may send for a tenant.
var isolatedCommands = []string{
	"rl.check", "rl.peek", "rl.reserve", "rl.commit", "rl.cancel", "rl.acquire", "rl.renew", "rl.release", "rl.explain", "rl.limits", "rl.reset", "rl.refund",
	"cl.throttle", "gcra", "throttle", "del",
}

// check fails the test unless the replies to random commands are equal.
func (n *neighbours) check(t *testing.T, commands int) {
	t.Helper()
	for seed := uint64(0); n.count < commands; seed++ {
		if difference := n.compare(t, seed, isolationRound); difference != "" {
			t.Fatal(difference)
		}
	}
	for _, name := range isolatedCommands {
		if n.served[name] == 0 {
			t.Errorf("%s is never served", name)
		}
	}
	t.Logf("%d commands get equal replies beside %d of the other user", n.count, n.beside.Load())
}

// TestUserIsolation: nothing that a user sends to a proxy over a cluster has an influence on the
// replies to a user of another tenant. Both send random commands of all kinds at the same time,
// and one of them the same again alone.
func TestUserIsolation(t *testing.T) {
	t.Run("all of each reply", func(t *testing.T) { newNeighbours(t, isolation.Users, false).check(t, 2*isolationRound) })
	t.Run("with a deny cache", func(t *testing.T) { newNeighbours(t, isolation.Users, true).check(t, isolationRound) })
}

// TestIsolationIsTheUsers: with a second user who may use all tenants, replies to the first one
// differ: it is the users file that separates them.
func TestIsolationIsTheUsers(t *testing.T) {
	n := newNeighbours(t, strings.Replace(isolation.Users, "~beta ~beta:*", "~*", 1), false)
	n.admin = true
	for seed := range uint64(5) {
		if n.compare(t, seed, isolationRound) != "" {
			return
		}
	}
	t.Errorf("%d commands get equal replies beside a user of all tenants", n.count)
}
