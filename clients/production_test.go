package clients

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/tlsfiles"
)

// driverUser is the user of the drivers, by its password or by its certificate.
const (
	driverUser     = "service-a"
	driverPassword = "staple-of-another-kind"
)

// operatorUser is the user of the connection that inspects the clients.
const (
	operatorUser     = "operator"
	operatorPassword = "battery-of-a-third-kind"
)

// production starts proxies with the settings of production: TLS, certificates and users
// towards clients; a Redis Cluster with TLS, a user with the least rights, and a password in a
// file that is replaced while the proxy runs.
type production struct {
	*redistest.Cluster
	store, clients *redistest.Authority
	folder         string
	server, driver keyPair
	known          keyPair // of the user of the drivers
	rotations      int     // of the password of Redis
}

// keyPair has the paths of a certificate and its key.
type keyPair struct{ cert, key string }

func newProduction(tb testing.TB) *production {
	tb.Helper()
	p := &production{store: redistest.NewAuthority(tb), clients: redistest.NewAuthority(tb), folder: tb.TempDir()}
	for name, pair := range map[string]*keyPair{"localhost": &p.server, "driver": &p.driver, driverUser: &p.known} {
		pair.cert, pair.key = p.clients.Issue(name, time.Now().Add(time.Hour))
	}
	p.write(tb, "users.acl", users("certificate=dns:"+driverUser))
	p.write(tb, "users-without-certificates.acl", users(""))
	p.write(tb, "password", p.password())
	args := append(p.store.Args(), "--user", "limitgate", "on", ">"+p.password())
	p.Cluster = redistest.StartCluster(tb, 3, 0, append(args, strings.Fields(cluster.Rights)...)...)
	return p
}

// users returns a users file. The user of the drivers has the tenants of their steps and a
// further rule.
func users(rule string) string {
	return fmt.Sprintf("user %s on #%x ~alone ~piped ~other ~key ~snippet +@check +@dialects %s\n"+
		"user %s on #%x ~* +@all\n", driverUser, sha256.Sum256([]byte(driverPassword)), rule,
		operatorUser, sha256.Sum256([]byte(operatorPassword)))
}

func (p *production) path(name string) string { return filepath.Join(p.folder, name) }

func (p *production) write(tb testing.TB, name, content string) {
	tb.Helper()
	if err := os.WriteFile(p.path(name), []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// password returns the proxies' password at the nodes.
func (p *production) password() string { return fmt.Sprintf("correct-horse-%d", p.rotations) }

// byPassword is the access of a client that authenticates with a user and a password. It shows a
// certificate that is no user's, if it can.
func (p *production) byPassword(r row) access {
	a := access{serve: p.serve, user: driverUser, environment: p.environment(p.driver)}
	if r.noCertificate != "" {
		a.serve = p.serveWithoutCertificates
		a.environment = p.environment(keyPair{})
	}
	a.environment = append(a.environment, "CLIENT_USER="+driverUser, "CLIENT_PASSWORD="+driverPassword)
	return a
}

// byCertificate is the access of a client whose certificate is a user's.
func (p *production) byCertificate() access {
	return access{serve: p.serve, user: driverUser, environment: p.environment(p.known)}
}

func (p *production) environment(own keyPair) []string {
	return []string{"CLIENT_CA=" + p.clients.CA, "CLIENT_CERT=" + own.cert, "CLIENT_KEY=" + own.key}
}

func (p *production) serve(tb testing.TB, yaml string) *proxy {
	tb.Helper()
	return p.serveWith(tb, yaml, "--tls-client-ca", p.clients.CA, "--users", p.path("users.acl"))
}

func (p *production) serveWithoutCertificates(tb testing.TB, yaml string) *proxy {
	tb.Helper()
	return p.serveWith(tb, yaml, "--users", p.path("users-without-certificates.acl"))
}

// serveWith starts a proxy on an empty store. The deny cache is off because the drivers
// expect each decision from the store.
func (p *production) serveWith(tb testing.TB, yaml string, flags ...string) *proxy {
	tb.Helper()
	p.FlushAll(tb)
	var addrs []string
	for _, n := range p.Nodes {
		addrs = append(addrs, n.TLSAddr())
	}
	running := &proxy{scheme: "https", Limitgate: start(tb, yaml, append(flags,
		"--redis", strings.Join(addrs, ","), "--redis-io-timeout", "10s", "--deny-cache-size", "0",
		"--redis-tls", "--redis-tls-ca", p.store.CA, "--redis-user", "limitgate", "--redis-password-file", p.path("password"),
		"--tls-cert", p.server.cert, "--tls-key", p.server.key)...)}
	running.inspect(&redis.Options{TLSConfig: p.config(tb), Username: operatorUser, Password: operatorPassword})
	running.web = &http.Client{Transport: &http.Transport{TLSClientConfig: p.config(tb)}}
	running.meanwhile = func(ctx context.Context) error { return p.rotate(ctx, running) }
	return running
}

// config is that of a client whose certificate is no user's.
func (p *production) config(tb testing.TB) *tls.Config {
	tb.Helper()
	files, err := tlsfiles.NewClient(tlsfiles.ClientOptions{CA: p.clients.CA, Cert: p.driver.cert, Key: p.driver.key})
	if err != nil {
		tb.Fatal(err)
	}
	config, err := files.Config("127.0.0.1")
	if err != nil {
		tb.Fatal(err)
	}
	return config
}

// rotate replaces the proxies' password at the nodes and in the file, cuts their connections to
// the nodes, and waits until the store decides again, which needs the new password.
func (p *production) rotate(ctx context.Context, running *proxy) error {
	before := p.password()
	p.rotations++
	if err := p.each(ctx, "ACL", "SETUSER", "limitgate", ">"+p.password()); err != nil {
		return err
	}
	if err := os.WriteFile(p.path("password"), []byte(p.password()), 0o600); err != nil {
		return err
	}
	if err := p.each(ctx, "ACL", "SETUSER", "limitgate", "<"+before); err != nil {
		return err
	}
	if err := p.each(ctx, "CLIENT", "KILL", "USER", "limitgate"); err != nil {
		return err
	}
	return running.awaitStore(ctx)
}

// each sends a command to all nodes.
func (p *production) each(ctx context.Context, words ...any) error {
	for _, n := range p.Nodes {
		if _, err := n.Ask(ctx, words...); err != nil {
			return fmt.Errorf("send %v to a node: %w", words, err)
		}
	}
	return nil
}

// awaitStore waits until the store decides for the tenant that drivers check at last.
func (p *proxy) awaitStore(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		reply, err := p.eye.Do(ctx, "RL.PEEK", "other", "-", "-").Slice()
		if err != nil {
			return fmt.Errorf("peek after the rotation: %w", err)
		}
		if len(reply) == 7 && reply[6] == "store" {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for the store after the rotation: %v: %w", reply, ctx.Err())
		}
	}
}
