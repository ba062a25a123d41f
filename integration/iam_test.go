package integration

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/resp"
)

// tokenRelay stands before a Redis as ElastiCache does: it takes connections with TLS, checks
// the token of IAM that each begins with, and logs in at the Redis with the password of the
// user, which it alone knows.
type tokenRelay struct {
	tokenReader
	addr, target string

	mu      sync.Mutex     // guards the fields below
	early   map[string]int // commands before a login
	refused []error        // logins
	tokens  map[string]int // the connections that logged in with each
	carried map[string]int // the connections on which a command was sent, by command
}

const relayedPassword = "known-to-the-relay-alone"

// relayedCommands are the commands by which a relay tells connections apart.
var relayedCommands = []string{"EVALSHA", "INFO", "PING", "CLUSTER"}

// startTokenRelay starts a relay to the Redis at target.
func startTokenRelay(t *testing.T, reader tokenReader, a *redistest.Authority, target string) *tokenRelay {
	t.Helper()
	certFile, keyFile := a.Issue("localhost", time.Now().Add(time.Hour))
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	r := &tokenRelay{tokenReader: reader, target: target, early: map[string]int{}, tokens: map[string]int{}, carried: map[string]int{}}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	r.addr = redistest.Listen(t, func(client net.Conn) { r.serve(t, tls.Server(client, config)) })
	return r
}

// port returns the port of a relay.
func (r *tokenRelay) port() int {
	_, text, _ := net.SplitHostPort(r.addr)
	n, _ := strconv.Atoi(text)
	return n
}

// serve forwards one connection after its login.
func (r *tokenRelay) serve(t *testing.T, client *tls.Conn) {
	defer func() { _ = client.Close() }()
	in := resp.NewReader(client)
	for isIn := false; !isIn; {
		words, err := in.Strings()
		if err != nil {
			return
		}
		var reply string
		isIn, reply = r.logIn(words)
		if _, err := io.WriteString(client, reply); err != nil {
			return
		}
	}
	server, err := net.Dial("tcp", r.target)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = server.Close() }()
	// The reply to AUTH goes to the client, as all others do.
	out := append(resp.AppendCommand(nil, "AUTH", r.user, relayedPassword), in.Buffered()...)
	if _, err := server.Write(out); err != nil {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	r.forward(server, client)
	_ = server.Close()
}

// logIn checks a command of a connection that has not logged in, and returns the reply unless
// it logs in.
func (r *tokenRelay) logIn(words []string) (isIn bool, reply string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(words) != 3 || words[0] != "AUTH" {
		r.early[strings.Join(words, " ")]++
		return false, "-NOAUTH Authentication required.\r\n"
	}
	err := fmt.Errorf("the user is %q", words[1])
	if words[1] == r.user {
		err = r.check(words[2], time.Now())
	}
	if err != nil {
		r.refused = append(r.refused, err)
		return false, "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	}
	r.tokens[words[2]]++
	return true, ""
}

// forward sends the bytes of a client on, and counts the commands that it has sent.
func (r *tokenRelay) forward(server io.Writer, client io.Reader) {
	seen := map[string]bool{}
	for buf := make([]byte, 64<<10); ; {
		n, err := client.Read(buf)
		for _, word := range relayedCommands {
			if !seen[word] && bytes.Contains(bytes.ToUpper(buf[:n]), []byte("\r\n"+word+"\r\n")) {
				seen[word] = true
				r.mu.Lock()
				r.carried[word]++
				r.mu.Unlock()
			}
		}
		if n > 0 {
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// environment returns variables that give a process the credentials and the region of tokens.
func (r *tokenReader) environment() []string {
	return append(os.Environ(),
		"AWS_REGION="+r.region, "AWS_ACCESS_KEY_ID="+r.accessKey, "AWS_SECRET_ACCESS_KEY="+r.secret, "AWS_SESSION_TOKEN="+r.session, "AWS_PROFILE=",
		"AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull, "AWS_EC2_METADATA_DISABLED=true",
	)
}

// iamFlags are the flags of a proxy that logs in at a relay.
func (r *tokenRelay) iamFlags(a *redistest.Authority, cache string) []string {
	return []string{"--redis", "rediss://" + r.addr, "--redis-tls-ca", a.CA, "--redis-auth", "iam", "--redis-user", r.user, "--redis-iam-cache", cache}
}

// relayedUser are the settings of a Redis with the user of tokens.
func relayedUser() []string {
	return append([]string{"--user", "limitgate", "on", ">" + relayedPassword}, strings.Fields(cluster.Rights)...)
}

// fakeTokens are those of a role with temporary credentials.
func fakeTokens() tokenReader {
	return tokenReader{
		cache: "limits", user: "limitgate", service: "elasticache", region: "eu-central-1",
		accessKey: "ASIAFAKEFAKEFAKEFAKE", secret: "fake/secret+access/key", session: "fake//session+token/of=a=role==",
	}
}

// serveIAM starts a proxy with the credentials of tokens.
func serveIAM(t *testing.T, r *tokenReader, limits string, flags ...string) *proxy {
	t.Helper()
	args := slices.Concat([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--limits", limits}, exact, flags)
	cmd := exec.Command(binaries.release, args...)
	cmd.Env = r.environment()
	p, found := launch(t, cmd, listening)
	p.addr, p.admin = found[1], found[2]
	return p
}

// TestIAM: a proxy decides exactly on a cluster that takes tokens of IAM only. Each connection
// logs in with a valid one, those of decisions and all others, and no output has a token.
func TestIAM(t *testing.T) {
	t.Parallel()
	a, tokens := redistest.NewAuthority(t), fakeTokens()
	c := redistest.StartCluster(t, 3, 0, relayedUser()...)
	var relays []*tokenRelay
	var ports []int
	for _, n := range c.Nodes {
		r := startTokenRelay(t, tokens, a, n.Addr)
		relays, ports = append(relays, r), append(ports, r.port())
	}
	if err := c.Announce(t.Context(), ports); err != nil {
		t.Fatal(err)
	}
	p := serveIAM(t, &tokens, writeLimits(t, limitOf("100/366d")), relays[0].iamFlags(a, "LIMITS")...)
	for i := range 10 {
		checkExactly(t, p, fmt.Sprint("first", i), 100)
	}
	if body := p.get("/readyz"); strings.Contains(body, "error") {
		t.Errorf("/readyz: %s", body)
	}
	for _, n := range c.Nodes {
		n.CLI(t, "CLIENT", "KILL", "USER", "limitgate")
	}
	client := p.client()
	eventually(t, "decisions by all nodes", func() bool {
		tally := checkPipeline(client, pacedTenants, func(i int) string { return fmt.Sprint("again", i) })
		return tally.sources["store"] == pacedTenants
	})
	output := p.output() + p.get("/metrics") + p.get("/readyz")
	for i, r := range relays {
		r.mu.Lock()
		t.Logf("relay %d: connections by commands: %v", i, r.carried)
		if len(r.refused)+len(r.early) > 0 || r.carried["EVALSHA"] < 2 || r.carried["PING"] == 0 || i == 0 && (r.carried["INFO"] == 0 || r.carried["CLUSTER"] == 0) {
			t.Errorf("relay %d: logins refused: %v, commands without a login: %v, connections by commands: %v", i, r.refused, r.early, r.carried)
		}
		for token := range r.tokens {
			_, signature, _ := strings.Cut(token, "X-Amz-Signature=")
			if strings.Contains(output, signature) || strings.Contains(output, tokens.secret) || strings.Contains(output, tokens.session) {
				t.Errorf("a token or a secret is in the output:\n%s", output)
			}
		}
		r.mu.Unlock()
	}
}

// TestIAMCaches: doctor logs in with the tokens of each kind of cache, over all of its
// connections.
func TestIAMCaches(t *testing.T) {
	a, node := redistest.NewAuthority(t), redistest.Start(t, relayedUser()...)
	plain := fakeTokens()
	plain.session = ""
	serverless, memory := plain, plain
	serverless.serverless, memory.service = true, "memorydb"
	for cache, tokens := range map[string]tokenReader{"limits": plain, "serverless:limits": serverless, "memorydb:limits": memory} {
		t.Run(cache, func(t *testing.T) {
			r := startTokenRelay(t, tokens, a, node.Addr)
			cmd := exec.Command(binaries.release, append([]string{"doctor", "--timeout", "60s", "--decision-timeout", "1s"}, r.iamFlags(a, cache)...)...)
			cmd.Env = tokens.environment()
			out, errs, code := runCommand(t, nil, cmd)
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.early, "PING") // finds out whether a login is needed
			if code != 0 || len(r.refused)+len(r.early) > 0 || r.carried["EVALSHA"] == 0 {
				t.Errorf("exit %d, logins refused: %v, commands without a login: %v\n%s%s", code, r.refused, r.early, out, errs)
			}
		})
	}
}

// TestIAMRefused: a proxy whose tokens are refused does not start, and names the reason without
// the token.
func TestIAMRefused(t *testing.T) {
	a, node, tokens := redistest.NewAuthority(t), redistest.Start(t, relayedUser()...), fakeTokens()
	changes := map[string]func(*tokenReader){
		"secret":  func(r *tokenReader) { r.secret = "other" },
		"cache":   func(r *tokenReader) { r.cache = "other" },
		"kind":    func(r *tokenReader) { r.serverless = true },
		"region":  func(r *tokenReader) { r.region = "eu-west-1" },
		"session": func(r *tokenReader) { r.session = "other" },
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		t.Run(name, func(t *testing.T) {
			expected := tokens
			changes[name](&expected)
			r := startTokenRelay(t, expected, a, node.Addr)
			cmd := exec.Command(binaries.release, append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, r.iamFlags(a, "limits")...)...)
			cmd.Env = tokens.environment()
			_, errs, code := runCommand(t, nil, cmd)
			r.mu.Lock()
			defer r.mu.Unlock()
			if code != 1 || !strings.Contains(errs, "WRONGPASS") || strings.Contains(errs, "X-Amz") || len(r.refused) == 0 || len(r.tokens) > 0 {
				t.Errorf("exit %d, refused %v: %s", code, r.refused, errs)
			}
		})
	}
}
