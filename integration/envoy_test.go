package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/limitgate/limitgate/internal/redistest"
)

// meshRules are rules with a tenth of a million descriptors' worth of room, and one of three a day.
const meshRules = `
domain: mesh
descriptors:
  - key: wide
    rate_limit: {unit: year, requests_per_unit: 1000000}
  - key: tight
    rate_limit: {unit: year, requests_per_unit: 3}
`

var servesRateLimits = regexp.MustCompile(`rls=(\S+)`)

// rateLimitClient returns a client of the proxy's rate limit service.
func (p *proxy) rateLimitClient(t *testing.T) rls.RateLimitServiceClient {
	t.Helper()
	return rls.NewRateLimitServiceClient(p.rateLimitConn(t))
}

// rateLimitConn returns a connection to the proxy's rate limit service.
func (p *proxy) rateLimitConn(t *testing.T) *grpc.ClientConn {
	t.Helper()
	found := servesRateLimits.FindStringSubmatch(p.output())
	if found == nil {
		t.Fatalf("no address of the rate limit service\n%s", p.output())
	}
	conn, err := grpc.NewClient(found[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// asksMesh asks about descriptors of one entry each, and returns the codes.
func asksMesh(ctx context.Context, c rls.RateLimitServiceClient, entries ...string) (string, error) {
	req := &rls.RateLimitRequest{Domain: "mesh"}
	for _, e := range entries {
		key, value, _ := strings.Cut(e, "=")
		req.Descriptors = append(req.Descriptors, &ratelimit.RateLimitDescriptor{Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: key, Value: value}}})
	}
	resp, err := c.ShouldRateLimit(ctx, req)
	if err != nil {
		return "", err
	}
	text := resp.GetOverallCode().String()
	for _, st := range resp.GetStatuses() {
		text += fmt.Sprint(" ", st.GetLimitRemaining())
	}
	return text, nil
}

// TestEnvoy: two proxies over one Redis decide exactly together, a change of the files is followed, files
// with mistakes leave the earlier rules in use, and answers keep coming while the Redis is gone.
func TestEnvoy(t *testing.T) {
	folder, node := t.TempDir(), redistest.Start(t)
	file := filepath.Join(folder, "mesh.yaml")
	write := func(rules string) {
		if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(meshRules)
	flags := []string{"--redis", node.Addr, "--rls", "127.0.0.1:0", "--rls-config", folder, "--rls-http", "127.0.0.1:0"}
	a, b := serve(t, "", append(exact, flags...)...), serve(t, "", flags...)
	first, second := a.rateLimitClient(t), b.rateLimitClient(t)
	for i, want := range []string{"OK 999999 2", "OK 999998 1", "OK 999997 0", "OVER_LIMIT 999997 0", "OVER_LIMIT 999997 0"} {
		c := first
		if i%2 == 1 {
			c = second
		}
		if got, err := asksMesh(t.Context(), c, "wide=x", "tight=x"); err != nil || got != want {
			t.Errorf("%d: %s, %v, want %s", i, got, err, want)
		}
	}
	write("domain: mesh\ndescriptors: [{key: wide, rate_limit: {unit: aeon}}]")
	eventually(t, "a mistake in the log", func() bool { return strings.Contains(a.output(), "failed to load the rate limit configuration") })
	if got, err := asksMesh(t.Context(), first, "wide=x"); err != nil || got != "OK 999996" {
		t.Errorf("with mistakes in the files: %s, %v", got, err)
	}
	write(strings.Replace(meshRules, "requests_per_unit: 3", "requests_per_unit: 5", 1))
	eventually(t, "the new rules", func() bool {
		got, err := asksMesh(t.Context(), first, "tight=x")
		return err == nil && got == "OK 1"
	})
	node.Kill()
	for range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		got, err := asksMesh(ctx, second, "wide=x")
		cancel()
		if err != nil || !strings.HasPrefix(got, "OK") {
			t.Fatalf("without its Redis: %s, %v", got, err)
		}
	}
	if metrics := b.get("/metrics"); !strings.Contains(metrics, `limitgate_decisions_total{limit="descriptor",mode="enforce",source="backstop",verdict="admit"}`) {
		t.Error("the backstop decided nothing")
	}
	if metrics := a.get("/metrics"); !strings.Contains(metrics, `ratelimit_service_rate_limit_over_limit{domain="mesh",key1="tight",key2=""}`) {
		t.Error("the rule has no metrics")
	}
}

// TestEnvoyEnvironment: limitgate envoy serves what the variables of envoyproxy/ratelimit say, and refuses
// all that it cannot do at once.
func TestEnvoyEnvironment(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "ratelimit", "config", "..data"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mesh.yaml", "..data/mesh.yaml"} { // a ConfigMap has both
		if err := os.WriteFile(filepath.Join(root, "ratelimit", "config", name), []byte(meshRules), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(binaries.release, "envoy", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--rls", "127.0.0.1:0", "--rls-http", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "RUNTIME_ROOT="+root, "RUNTIME_SUBDIRECTORY=ratelimit", "USE_STATSD=false", "LOCAL_CACHE_SIZE_IN_BYTES=1000000",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+redistest.Start(t).Addr, "LOG_LEVEL=info", "SHADOW_MODE=true")
	p, found := launch(t, cmd, listening)
	p.addr, p.admin = found[1], found[2]
	c := p.rateLimitClient(t)
	for i, want := range []string{"OK 2", "OK 1", "OK 0", "OK 0"} { // all rules are in shadow mode
		if got, err := asksMesh(t.Context(), c, "tight=x"); err != nil || got != want {
			t.Errorf("%d: %s, %v, want %s", i, got, err, want)
		}
	}
	if !strings.Contains(p.output(), "LOCAL_CACHE_SIZE_IN_BYTES: ") {
		t.Errorf("no notice\n%s", p.output())
	}
	refused := exec.Command(binaries.release, "envoy")
	refused.Env = append(os.Environ(), "BACKEND_TYPE=memcache", "REDIS_PERSECOND=true", "NEAR_LIMIT_RATIO=much")
	_, stderr, code := runCommand(t, nil, refused)
	for _, name := range []string{"BACKEND_TYPE", "REDIS_PERSECOND", "NEAR_LIMIT_RATIO"} {
		if !strings.Contains(stderr, name) {
			t.Errorf("%s is not refused", name)
		}
	}
	if code != 64 {
		t.Errorf("exit %d\n%s", code, stderr)
	}
}
