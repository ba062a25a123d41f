package integration

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/awstest"
	internalrun "github.com/limitgate/limitgate/internal/run"
)

// rotationRate is the checks a second during rotations.
const rotationRate = 5000

// rotation is a secret in Secrets Manager that has the password of a Redis.
type rotation struct {
	redis    *secureRedis
	emulator *awstest.AWS
	endpoint string      // the URL of Secrets Manager for proxies
	slow     atomic.Bool // Secrets Manager is slow
	client   *secretsmanager.Client
	arn      string
	password string // the present one
}

func newRotation(t *testing.T) *rotation {
	t.Helper()
	const first = "correct-horse-battery"
	r := &rotation{emulator: awstest.Start(t), redis: startSecureRedis(t, first), password: first}
	r.endpoint = r.startSecrets(t)
	r.client = secretsmanager.NewFromConfig(r.emulator.Config)
	made, err := r.client.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: aws.String("redis"), SecretString: secretOf(first)})
	if err != nil {
		t.Fatal(err)
	}
	r.arn = *made.ARN
	return r
}

// startSecrets starts an HTTP proxy of the emulator and returns its URL. While slow is set, its
// replies take longer than a connection to Redis may take to open, as those of a distant region
// may.
func (r *rotation) startSecrets(t *testing.T) string {
	t.Helper()
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: r.emulator.Addr})
	forward.ErrorLog = log.New(io.Discard, "", 0) // of clients that ended before their replies
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.slow.Load() && !internalrun.Sleep(req.Context(), 2*cluster.DefaultDialTimeout) {
			return
		}
		forward.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// secretOf returns the text of a secret in the form of AWS's rotation.
func secretOf(password string) *string {
	return aws.String(`{"username": "limitgate", "password": "` + password + `"}`)
}

// serve starts a proxy that logs in with the secret.
func (r *rotation) serve(t *testing.T) *proxy {
	t.Helper()
	args := append(append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--limits", writeLimits(t, limitOf("1000000/s"))}, r.redis.flags()...), exact...)
	cmd := exec.Command(binaries.release, append(args, "--redis-password-secret", r.arn)...)
	cmd.Env = slices.Concat(os.Environ(), r.emulator.Environment(), awstest.Endpoint(r.endpoint))
	p, found := launch(t, cmd, listening)
	p.addr, p.admin = found[1], found[2]
	return p
}

// publish makes a password the present version of the secret.
func (r *rotation) publish(t *testing.T, password string) {
	t.Helper()
	if _, err := r.client.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{SecretId: &r.arn, SecretString: secretOf(password)}); err != nil {
		t.Fatal(err)
	}
}

// add adds a password to the user. The one before stays valid.
func (r *rotation) add(t *testing.T, password string) {
	t.Helper()
	r.redis.each(t, "ACL", "SETUSER", "limitgate", ">"+password)
}

// remove removes the password before from the user.
func (r *rotation) remove(t *testing.T, password string) {
	t.Helper()
	r.redis.each(t, "ACL", "SETUSER", "limitgate", "<"+r.password)
	r.password = password
}

// reconnect closes the connections of the proxy that do not carry decisions, and waits until it
// has logged in again.
func (r *rotation) reconnect(t *testing.T, p *proxy) {
	t.Helper()
	for _, n := range r.redis.Nodes {
		for line := range strings.Lines(n.CLI(t, "CLIENT", "LIST")) {
			if strings.Contains(line, " user=limitgate ") && !strings.Contains(line, " cmd=evalsha ") {
				id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
				n.CLI(t, "CLIENT", "KILL", "ID", id)
			}
		}
	}
	eventually(t, "logins with the new password", func() bool { return !strings.Contains(p.get("/readyz"), "error") })
}

// cut closes all connections of the proxy to Redis, and waits until the store decides for
// tenants of all nodes again.
func (r *rotation) cut(t *testing.T, p *proxy) {
	t.Helper()
	c := p.client()
	r.redis.each(t, "CLIENT", "KILL", "USER", "limitgate")
	eventually(t, "decisions by all nodes", func() bool {
		tally := checkPipeline(c, pacedTenants, func(i int) string { return fmt.Sprint("t", i) })
		return tally.sources["store"] == pacedTenants
	})
}

// decides fails the test unless a proxy that starts now decides by the store.
func (r *rotation) decides(t *testing.T, when string) {
	t.Helper()
	p := r.serve(t)
	if v, err := check(p.client(), "started", "-", "-"); err != nil || v.source != "store" {
		t.Errorf("a proxy that starts %s: %+v, %v\n%s", when, v, err, p.output())
	}
	_ = p.stop(syscall.SIGTERM)
}

// report logs what a load found, and fails the test for errors, and for decisions without the
// store while connections were open.
func (r *rotation) report(t *testing.T, load *pacedLoad) {
	t.Helper()
	rate := load.end()
	t.Logf("%.0f checks a second; with connections open: %s", rate, &load.quiet)
	load.quiet.fromStoreOnly(t)
	for i := range load.disturbed {
		cut := &load.disturbed[i]
		t.Logf("while all connections were cut, after %d rotations: %s", i, cut)
		if len(cut.errors) > 0 || cut.sources["store"]+cut.sources["backstop"] != cut.decisions() {
			t.Errorf("errors, or other sources: %v", cut.errors)
		}
	}
}

// rotate replaces the password of the user while a load runs. It starts a proxy before the
// nodes know the new password, and makes p log in with it.
func (r *rotation) rotate(t *testing.T, p *proxy, load *pacedLoad, password string) {
	t.Helper()
	r.slow.Store(true)
	r.publish(t, password)
	r.decides(t, "before the nodes know its password")
	r.add(t, password)
	load.awaitMore(t, rotationRate/4)
	r.remove(t, password)
	r.reconnect(t, p)
	r.slow.Store(false)
	load.awaitMore(t, rotationRate/4)
	load.disturb(func() { r.cut(t, p) })
	load.awaitMore(t, rotationRate/4)
}

// TestSecretRotation: a secret that is rotated under 5,000 checks a second costs no error and
// no decision without the store, although the proxy logs in again meanwhile and Secrets Manager
// is slow. While all connections are cut some decisions are the backstop's, before a rotation as
// after it, and none is an error. Proxies that start before the nodes know the new password, and
// afterwards, log in.
func TestSecretRotation(t *testing.T) {
	r := newRotation(t)
	p := r.serve(t)
	load := startPaced(p, rotationRate)
	load.awaitMore(t, rotationRate/4)
	load.disturb(func() { r.cut(t, p) })
	r.rotate(t, p, load, "staple-of-another-kind")
	r.report(t, load)
	r.decides(t, "after the rotation")
}
