package integration

import (
	"crypto/tls"
	"flag"
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

var secureFaults = flag.Bool("faults-secure", false, "run the faults with the settings of production: TLS, users and certificates on both sides")

// production has the files that a proxy in production is started with: TLS and a user
// with the least rights towards Redis; TLS, certificates and users towards clients.
type production struct {
	store, clients *redistest.Authority
	folder         string
}

const productionPassword = "correct-horse-battery"

func newProduction(t *testing.T) *production {
	t.Helper()
	p := &production{store: redistest.NewAuthority(t), clients: redistest.NewAuthority(t), folder: t.TempDir()}
	writePassword(t, p.path("password"), productionPassword)
	if err := os.WriteFile(p.path("users.acl"), []byte("user service-a on certificate=dns:service-a ~* +@check +@read\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *production) path(name string) string { return filepath.Join(p.folder, name) }

// redisArgs are the settings of the nodes.
func (p *production) redisArgs() []string {
	return append(append(p.store.Args(), "--user", "limitgate", "on", ">"+productionPassword), strings.Fields(cluster.Rights)...)
}

// addrs returns the TLS addresses of the nodes.
func (p *production) addrs(c *redistest.Cluster) (all []string) {
	for _, n := range c.Nodes {
		all = append(all, n.TLSAddr())
	}
	return all
}

// serve starts a proxy whose clients have a certificate of service-a.
func (p *production) serve(t *testing.T, limits string, flags ...string) *proxy {
	t.Helper()
	cert, key := p.clients.Issue("localhost", time.Now().Add(time.Hour))
	running := serve(t, limits, append(flags,
		"--redis-tls", "--redis-tls-ca", p.store.CA, "--redis-user", "limitgate", "--redis-password-file", p.path("password"),
		"--tls-cert", cert, "--tls-key", key, "--tls-client-ca", p.clients.CA, "--users", p.path("users.acl"))...)
	own, ownKey := p.clients.Issue("service-a", time.Now().Add(time.Hour))
	files, err := tlsfiles.NewClient(tlsfiles.ClientOptions{CA: p.clients.CA, Cert: own, Key: ownKey})
	if err != nil {
		t.Fatal(err)
	}
	config := func() *tls.Config {
		c, err := files.Config("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	running.options = func(o *redis.Options) { o.TLSConfig = config() }
	running.web = &http.Client{Transport: &http.Transport{TLSClientConfig: config()}}
	t.Cleanup(running.web.CloseIdleConnections)
	return running
}
