package integration

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
)

// userRule returns the rule for a generated password.
func userRule(password string) string {
	sum := sha256.Sum256([]byte(password))
	return "#" + hex.EncodeToString(sum[:])
}

// guarded is a proxy with a file of users.
type guarded struct {
	*proxy
	path string
}

// put replaces the file of users.
func (g *guarded) put(t *testing.T, lines ...string) {
	t.Helper()
	if err := os.WriteFile(g.path+".new", []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(g.path+".new", g.path); err != nil {
		t.Fatal(err)
	}
}

func serveUsers(t *testing.T, lines []string, flags ...string) *guarded {
	t.Helper()
	g := &guarded{path: filepath.Join(t.TempDir(), "users.acl")}
	g.put(t, lines...)
	g.proxy = serve(t, writeLimits(t, limitOf("1000/s")), append([]string{"--users", g.path}, flags...)...)
	return g
}

// as returns a client that authenticates.
func (g *guarded) as(t *testing.T, user, password string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: g.addr, Username: user, Password: password, MaxRetries: -1, DialerRetries: 1, PoolSize: 1, ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestHashPasswordWithoutStdin: a password at the standard input is not dropped in silence.
func TestHashPasswordWithoutStdin(t *testing.T) {
	out, errs, code := run(t, strings.NewReader("a password of mine\n"), "hash-password")
	if code != 0 || !strings.HasPrefix(out, "password ") || !strings.Contains(errs, "a password is generated, and none read from standard input: --stdin hashes its first line") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// chosenRule returns the rule that hash-password makes for a password that was chosen.
func chosenRule(t *testing.T, password string) string {
	t.Helper()
	rule, errs, code := run(t, strings.NewReader(password+"\n"), "hash-password", "--stdin")
	if code != 0 || !strings.HasPrefix(rule, "$argon2id$") {
		t.Fatalf("exit %d: %s%s", code, rule, errs)
	}
	return strings.TrimSpace(rule)
}

func fails(err error, with string) bool { return err != nil && strings.HasPrefix(err.Error(), with) }

// TestUsers: clients authenticate and use their tenants, and a changed file counts at once,
// for open connections too.
func TestUsers(t *testing.T) {
	ops := "user ops on " + chosenRule(t, "correct horse battery") + " ~* +@all"
	g := serveUsers(t, []string{"# services", "user acme on " + userRule("one") + " ~acme +@check", "user other on " + userRule("two") + " ~other +@check", ops})
	acme, other, admin := g.as(t, "acme", "one"), g.as(t, "other", "two"), g.as(t, "ops", "correct horse battery")
	for name, c := range map[string]*redis.Client{"-": acme, "other": other, "any": admin} {
		if v, err := check(c, name, "-", "-"); err != nil || !v.allowed {
			t.Fatalf("tenant %s: %+v, %v", name, v, err)
		}
	}
	if _, err := check(acme, "other", "-", "-"); !fails(err, "NOPERM this user may not check tenant 'other'") {
		t.Errorf("another tenant: %v", err)
	}
	if _, err := check(g.client(), "acme", "-", "-"); !fails(err, "NOAUTH") {
		t.Errorf("without a password: %v", err)
	}
	if _, err := check(g.as(t, "acme", "two"), "acme", "-", "-"); !fails(err, "WRONGPASS") {
		t.Errorf("a wrong password: %v", err)
	}
	if _, errs, code := run(t, nil, "doctor", "--redis", g.addr); code != 1 || !strings.Contains(errs, "is a limitgate, not a Redis") {
		t.Errorf("doctor at a limitgate with users: exit %d: %s", code, errs)
	}
	password := filepath.Join(t.TempDir(), "password")
	writePassword(t, password, "one")
	open := serve(t, writeLimits(t, limitOf("1000/s")))
	if out, errs, code := run(t, nil, "check", "--addr", open.addr, "--password-file", password, "acme", "-", "-"); code != 0 ||
		errs != "limitgate check: --password-file has no effect: the limitgate at "+open.addr+" asks the default user for no password (warning)\n" {
		t.Errorf("without users: exit %d: %s%s", code, out, errs)
	}
	// This user may not ask RL.EXPLAIN, which has the warnings.
	if out, errs, code := run(t, nil, "check", "--addr", g.addr, "--user", "acme", "--password-file", password, "-", "-", "-", "1", "DIM", "unused", "x"); code != 0 || errs != "" {
		t.Errorf("check: exit %d: %s%s", code, out, errs)
	}

	// The user acme changes, other stays, and a new one comes.
	ids := func(c *redis.Client) int64 { return c.ClientID(t.Context()).Val() }
	before := ids(other)
	g.put(t, "user other on "+userRule("two")+" ~other +@check", "user acme on "+userRule("three")+" ~acme +@check", "user new on "+userRule("four")+" ~new +@check", ops)
	eventually(t, "the new user", func() bool {
		_, err := check(g.as(t, "new", "four"), "-", "-", "-")
		return err == nil
	})
	if _, err := check(acme, "-", "-", "-"); err == nil {
		t.Error("the connection of a user that has changed goes on")
	}
	if _, err := check(other, "-", "-", "-"); err != nil || ids(other) != before {
		t.Errorf("the connection of a user that has not changed was closed: %v", err)
	}

	// A file with a mistake changes nothing, and its mistake is reported.
	g.put(t, "user other off", "user ops on >hunter2")
	eventually(t, "a line about the mistake", func() bool {
		return strings.Contains(g.output(), "failed to read the users, using the earlier ones") && metric(g.get("/metrics"), "limitgate_users_stale") == 1
	})
	if err := admin.Do(t.Context(), "ACL", "LOAD").Err(); err == nil || !strings.Contains(err.Error(), "a file holds hashes and no passwords") {
		t.Errorf("ACL LOAD of a file with a mistake: %v", err)
	}
	if _, err := check(other, "-", "-", "-"); err != nil || ids(other) != before {
		t.Errorf("a file with a mistake closed a connection: %v", err)
	}
	if strings.Contains(g.output(), "hunter2") || strings.Contains(g.output(), "correct horse") {
		t.Error("a password is in the log")
	}

	// A signal reads the file too, and the administrator may be gone after that.
	g.put(t, "user other on "+userRule("two")+" ~other +@check")
	_ = g.cmd.Process.Signal(syscall.SIGHUP)
	eventually(t, "the end of an administrator", func() bool { return admin.Ping(t.Context()).Err() != nil })
	if metric(g.get("/metrics"), "limitgate_users_stale") != 0 {
		t.Error("the users are stale")
	}
}

// TestUserOfCertificate: a certificate that a rule names authenticates, others do not.
func TestUserOfCertificate(t *testing.T) {
	a, clients := redistest.NewAuthority(t), redistest.NewAuthority(t)
	users := filepath.Join(t.TempDir(), "users.acl")
	put := func(line string) {
		if err := os.WriteFile(users, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("user acme on certificate=dns:service-a ~acme +@check\nuser other on " + userRule("two") + " ~other +@check")
	p := certify(t, a, clients.CA, "--users", users)
	c := p.client(t, a, clients, nil)
	if v, err := check(c, "-", "-", "-"); err != nil || !v.allowed {
		t.Fatalf("%+v, %v", v, err)
	}
	if _, err := check(c, "other", "-", "-"); !fails(err, "NOPERM") {
		t.Errorf("another tenant: %v", err)
	}
	own, key := clients.Issue("service-a", time.Now().Add(time.Hour))
	if out, errs, code := run(t, nil, "check", "--addr", p.addr, "--tls", "--tls-ca", a.CA, "--tls-cert", own, "--tls-key", key, "-", "-", "-"); code != 0 {
		t.Errorf("check: exit %d: %s%s", code, out, errs)
	}
	if _, errs, code := run(t, nil, "serve", "--listen", "127.0.0.1:0", "--admin", "", "--users", users); code != 1 || !strings.Contains(errs, "user acme is known by a certificate, and clients show none: set --tls-client-ca") {
		t.Errorf("users of certificates without certificates: exit %d: %s", code, errs)
	}
	if err := c.Do(t.Context(), "AUTH", "other", "two").Err(); err != nil {
		t.Errorf("AUTH as another user: %v", err)
	}
	if err := c.Do(t.Context(), "RESET").Err(); err != nil {
		t.Error(err)
	}
	if who := c.Do(t.Context(), "ACL", "WHOAMI").Val(); who != "acme" {
		t.Errorf("behind RESET the user is %v", who)
	}
	put("user acme on certificate=cn:service-a ~acme +@check") // the certificate has a stronger name
	eventually(t, "the end of the connection", func() bool { return c.Ping(t.Context()).Err() != nil })
	if _, err := check(p.client(t, a, clients, nil), "acme", "-", "-"); !fails(err, "NOAUTH") {
		t.Errorf("a certificate without a user: %v", err)
	}
}

// TestGuessedPasswords: a crowd that guesses passwords costs a bounded number of computations,
// and others get their decisions.
func TestGuessedPasswords(t *testing.T) {
	g := serveUsers(t, []string{"user chosen on " + chosenRule(t, "correct horse battery") + " ~* +@all", "user acme on " + userRule("one") + " ~acme +@check"})
	stop := make(chan struct{})
	var crowd sync.WaitGroup
	var mu sync.Mutex
	replies := map[string]int{}
	for i := range 30 {
		crowd.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				c, err := net.Dial("tcp", g.addr)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = fmt.Fprintf(c, "AUTH chosen guess-%d-%d\r\n", i, n)
				reply := make([]byte, 100)
				size, _ := c.Read(reply)
				if strings.HasPrefix(string(reply), "-ERR") {
					if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
						t.Errorf("behind a refusal: %q, %v", rest, err)
					}
				}
				mu.Lock()
				replies[strings.TrimSpace(string(reply[:size]))]++
				mu.Unlock()
				_ = c.Close()
			}
		})
	}
	acme := g.as(t, "acme", "one")
	for range 2000 {
		if v, err := check(acme, "-", "-", "-"); err != nil || v.source != "store" {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	eventually(t, "a refused guess", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return replies["-ERR too many failed attempts to authenticate from this address: try again in a minute"] > 100
	})
	close(stop)
	crowd.Wait()
	t.Log(replies)
	// The address has 20 attempts at once and 20 a minute.
	if n := metric(g.get("/metrics"), "limitgate_auth_hashes_total"); n > 60 || n < 20 {
		t.Errorf("%d computations", n)
	}
	// Another client at the same address is not shut out, as long as its password is cheap.
	if _, err := check(g.as(t, "acme", "one"), "-", "-", "-"); err != nil {
		t.Error(err)
	}
}

// TestLongPasswords: a password of any length costs bounded memory.
func TestLongPasswords(t *testing.T) {
	g := serveUsers(t, []string{"user acme on " + userRule("one") + " ~acme +@check"})
	long, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = long.Close() }()
	if _, err := fmt.Fprint(long, "*3\r\n$4\r\nAUTH\r\n$4\r\nacme\r\n$1048576\r\n"); err != nil {
		t.Fatal(err)
	}
	if reply, err := io.ReadAll(long); string(reply) != "-ERR Protocol error: invalid bulk length\r\n" || err != nil {
		t.Errorf("a password of a megabyte: %q, %v", reply, err)
	}
	c := g.as(t, "acme", "one")
	if err := c.Do(t.Context(), "AUTH", "acme", strings.Repeat("x", 60<<10)).Err(); !fails(err, "WRONGPASS") {
		t.Errorf("a long password: %v", err)
	}
	if _, err := check(c, "-", "-", "-"); err != nil {
		t.Errorf("behind a failed AUTH: %v", err)
	}
}

// TestUsersProtectTheNetwork: a proxy with users may listen on any address, unless one of them
// needs no password.
func TestUsersProtectTheNetwork(t *testing.T) {
	g := serveUsers(t, []string{"user acme on " + userRule("one") + " ~acme +@check"}, "--listen", "0.0.0.0:0")
	if !strings.Contains(g.output(), "passwords of clients cross the network unencrypted") {
		t.Errorf("no warning:\n%s", g.output())
	}
	path := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(path, []byte("user default on nopass ~* +@check"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := run(t, nil, "serve", "--listen", "0.0.0.0:0", "--admin", "", "--users", path); code != 1 || !strings.Contains(errs, "user default needs no password") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if err := os.WriteFile(path, []byte("user guest on nopass ~* +@check"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := run(t, nil, "serve", "--listen", "0.0.0.0:0", "--admin", "", "--users", path); code != 1 || !strings.Contains(errs, "user guest needs no password") {
		t.Errorf("exit %d: %s", code, errs)
	}
	g.put(t)
	eventually(t, "a line about the empty file", func() bool { return strings.Contains(g.output(), "there is no user in it") })
	g.put(t, "user default on nopass ~* +@check")
	eventually(t, "a line about the default user", func() bool { return strings.Contains(g.output(), "user default needs no password") })
}

// TestTokensOfClients: a proxy takes tokens whose keys are at a URL or in a file, with a file of
// users or without one, and starts while the URL does not answer.
func TestTokensOfClients(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key := base64.RawURLEncoding.EncodeToString(private.Public().(ed25519.PublicKey))
	jwks := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":%q}]}`, key)
	claims := jwt.MapClaims{"iss": "https://issuer.example", "aud": "limitgate", "exp": time.Now().Add(time.Hour).Unix(), "org": "acme"}
	unsigned := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	unsigned.Header["kid"] = "k"
	token, err := unsigned.SignedString(private)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(path, []byte(jwks), 0o600); err != nil {
		t.Fatal(err)
	}
	var up atomic.Bool
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte(jwks))
	}))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", ca)
	flags := func(jwks string) []string {
		return []string{"--jwt-jwks", jwks, "--jwt-issuer", "https://issuer.example", "--jwt-audience", "limitgate", "--jwt-tenant-claim", "org"}
	}
	both := serveUsers(t, []string{"user other on " + userRule("two") + " ~other +@check"}, flags(path)...)
	alone := &guarded{proxy: serve(t, writeLimits(t, limitOf("1000/s")), flags(server.URL)...)}
	if _, err := check(alone.as(t, "jwt", token), "-", "-", "-"); !fails(err, "WRONGPASS the token is refused: no key fits the token") {
		t.Errorf("before the keys were read: %v", err)
	}
	up.Store(true)
	eventually(t, "the keys", func() bool { return metric(alone.get("/metrics"), "limitgate_jwt_keys") == 1 })
	for _, g := range []*guarded{both, alone} {
		c := g.as(t, "jwt", token)
		if v, err := check(c, "-", "-", "-"); err != nil || !v.allowed {
			t.Errorf("%+v, %v", v, err)
		}
		if _, err := check(c, "other", "-", "-"); !fails(err, "NOPERM this user may not check tenant 'other'") {
			t.Errorf("another tenant: %v", err)
		}
		if strings.Contains(g.output(), token) {
			t.Error("a token is in the log")
		}
	}
	if _, err := check(both.as(t, "other", "two"), "-", "-", "-"); err != nil {
		t.Error(err)
	}
}
