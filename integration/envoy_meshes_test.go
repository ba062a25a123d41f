package integration

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/syncbuffer"
)

// launchEnvoy runs limitgate envoy with variables, and returns it with the address of its debug port.
func launchEnvoy(t *testing.T, environ ...string) (p *proxy, debug string) {
	t.Helper()
	port := freePorts(t, 1)[0]
	cmd := exec.Command(binaries.release, "envoy", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--rls", "127.0.0.1:0", "--rls-http", "127.0.0.1:0")
	cmd.Env = append(append(os.Environ(), "REDIS_SOCKET_TYPE=tcp", "LOG_LEVEL=info", "DEBUG_PORT="+port), environ...)
	p, found := launch(t, cmd, listening)
	p.addr, p.admin = found[1], found[2]
	return p, "http://127.0.0.1:" + port
}

// TestEnvoyAlone: limitgate envoy prints a request of Envoy's service, and nothing of the sample of limits.
func TestEnvoyAlone(t *testing.T) {
	var stdout syncbuffer.Buffer
	cmd := exec.Command(binaries.release, "envoy", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--rls", "127.0.0.1:0", "--rls-http", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "REDIS_SOCKET_TYPE=tcp", "LOG_LEVEL=info", "DEBUG_PORT=0", "FORCE_START_WITHOUT_INITIAL_CONFIG=true", "RUNTIME_ROOT="+t.TempDir(), "REDIS_URL="+redistest.Start(t).Addr)
	cmd.Stdout = &stdout
	p, _ := launch(t, cmd, regexp.MustCompile("the backstop has no ceiling"))
	if out := stdout.String(); !strings.Contains(out, "  curl http://127.0.0.1:") || !strings.Contains(out, "/json -d '{") || strings.Contains(out, "RL.CHECK") {
		t.Errorf("it prints %s", out)
	}
	for _, of := range []string{"sample of limits", "monthly", "listed tenants"} {
		if strings.Contains(p.output(), of) {
			t.Errorf("the log has %q:\n%s", of, p.output())
		}
	}
}

// getText returns the body of a page.
func getText(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestEnvoyMeshes: meshes with different prefixes or databases share no counter of a Redis, those with the
// same do, and the debug port shows the limits.
func TestEnvoyMeshes(t *testing.T) {
	root, node := t.TempDir(), redistest.Start(t)
	folder := filepath.Join(root, "config")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "mesh.yaml"), []byte(meshRules), 0o600); err != nil {
		t.Fatal(err)
	}
	of := func(url string, environ ...string) (p *proxy, debug string) {
		t.Helper()
		return launchEnvoy(t, append(environ, "REDIS_URL="+url, "RUNTIME_ROOT="+root)...)
	}
	a, debug := of(node.Addr, "CACHE_KEY_PREFIX=a")
	other, _ := of(node.Addr, "CACHE_KEY_PREFIX=b")
	none, _ := of(node.Addr)
	database, _ := of("redis://" + node.Addr + "/1")
	again, _ := of(node.Addr, "CACHE_KEY_PREFIX=a")
	for i, c := range []struct {
		p    *proxy
		want string
	}{{a, "OK 2"}, {other, "OK 2"}, {none, "OK 2"}, {database, "OK 2"}, {again, "OK 1"}, {a, "OK 0"}, {again, "OVER_LIMIT 0"}, {other, "OK 1"}, {none, "OK 1"}, {database, "OK 1"}} {
		if got, err := asksMesh(t.Context(), c.p.rateLimitClient(t), "tight=x"); err != nil || got != c.want {
			t.Errorf("%d: %s, %v, want %s", i, got, err, c.want)
		}
	}
	const want = "mesh.tight: unit=YEAR requests_per_unit=3, shadow_mode: false, quota_mode: false\n" +
		"mesh.wide: unit=YEAR requests_per_unit=1000000, shadow_mode: false, quota_mode: false\n"
	if got := getText(t, debug+"/rlconfig"); got != want {
		t.Errorf("/rlconfig: %s", got)
	}
	if got := getText(t, debug+"/stats"); !strings.Contains(got, `ratelimit_service_rate_limit_total_hits{domain="mesh",key1="tight",key2=""} 2`) {
		t.Errorf("/stats: %s", got)
	}
}

// TestEnvoyNative: a native domain and RL.CHECK share the buckets of plans, on two proxies.
func TestEnvoyNative(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.yaml")
	const limits = "version: 1\ndefault_plan: p\nplans: {p: [{id: quota, by: [tenant, user], rate: 4/365d, algorithm: fixed_window}]}\n"
	if err := os.WriteFile(file, []byte(limits), 0o600); err != nil {
		t.Fatal(err)
	}
	node := redistest.Start(t)
	a := serve(t, "", append(exact, "--redis", node.Addr, "--limits", file, "--rls", "127.0.0.1:0", "--rls-native", "mesh")...)
	b := serve(t, "", append(exact, "--redis", node.Addr, "--limits", file)...)
	ask := func() string {
		t.Helper()
		resp, err := a.rateLimitClient(t).ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "mesh", Descriptors: []*ratelimit.RateLimitDescriptor{
			{Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: "tenant", Value: "acme"}, {Key: "user", Value: "ann"}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		st := resp.GetStatuses()[0]
		return fmt.Sprint(st.GetCode(), " ", st.GetCurrentLimit().GetName(), " ", st.GetLimitRemaining())
	}
	client := b.client()
	for i, want := range []string{"OK quota 3", "OK quota 1", "OVER_LIMIT quota 0"} {
		if got := ask(); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
		if err := client.Do(t.Context(), "RL.CHECK", "acme", "-", "-", "1", "DIM", "user", "ann").Err(); err != nil {
			t.Fatal(err)
		}
	}
	if metrics := a.get("/metrics"); !strings.Contains(metrics, `limitgate_decisions_total{limit="quota",mode="enforce",source="store",verdict="deny"}`) {
		t.Error("the denial is in no metric")
	}
}

// TestEnvoyForceStart: a service that may start without limits admits, is healthy, unless it waits for them,
// and counts those that it refused.
func TestEnvoyForceStart(t *testing.T) {
	root := t.TempDir()
	p, debug := launchEnvoy(t, "FORCE_START_WITHOUT_INITIAL_CONFIG=true", "RUNTIME_ROOT="+root, "REDIS_URL="+redistest.Start(t).Addr)
	waits, _ := launchEnvoy(t, "FORCE_START_WITHOUT_INITIAL_CONFIG=true", "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true", "RUNTIME_ROOT="+root, "REDIS_URL="+redistest.Start(t).Addr)
	health := func(p *proxy) string {
		h, err := healthpb.NewHealthClient(p.rateLimitConn(t)).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "ratelimit"})
		return fmt.Sprint(h.GetStatus(), err)
	}
	eventually(t, "the health of a service that does not wait", func() bool { return health(p) == "SERVING <nil>" })
	if got := health(waits); got != "NOT_SERVING <nil>" {
		t.Errorf("the health of a service that waits for limits: %s", got)
	}
	c := p.rateLimitClient(t)
	if got, err := asksMesh(t.Context(), c, "tight=x"); err != nil || got != "OK 0" {
		t.Errorf("without limits: %s, %v", got, err)
	}
	if got := getText(t, debug+"/rlconfig"); got != "" {
		t.Errorf("/rlconfig without limits: %s", got)
	}
	if err := os.Mkdir(filepath.Join(root, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "config", "mesh.yaml"), []byte(meshRules), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the limits", func() bool {
		got, err := asksMesh(t.Context(), c, "tight=x")
		return err == nil && got == "OK 2"
	})
	eventually(t, "the health of a service that waited", func() bool { return health(waits) == "SERVING <nil>" })
	if got := getText(t, debug+"/stats"); !strings.Contains(got, "ratelimit_service_config_load_error 1\n") || !strings.Contains(got, "ratelimit_service_config_load_success 1\n") {
		t.Errorf("/stats: %s", got)
	}
	if !strings.Contains(p.output(), "failed to load the rate limit configuration") {
		t.Errorf("the log has no reason\n%s", p.output())
	}
}
