package integration

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestMetricsPage: docs/metrics.md lists the metrics of a proxy in memory, of one on a
// Redis, of one in a cell during a canary, of one for Envoy, and of a control plane, with
// their types, and no others.
func TestMetricsPage(t *testing.T) {
	content, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	types := func(pattern, text string) map[string]string {
		found := map[string]string{}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			found[m[1]] = m[2]
		}
		return found
	}
	const kinds = `(?m)^# TYPE ((?:limitgate|ratelimit_service)_\w+) (\w+)$`
	page := types("(?m)^\\| `(\\w+)` \\| (\\w+) \\|", string(content))
	served := map[string]string{}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("whsec_"+strings.Repeat("A", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{nil, {"--redis", redistest.Start(t).Addr}} {
		p := serve(t, writeLimits(t, limitOf("100/h, warn: 80%")), append(append(flags, exact...), "--http", "127.0.0.1:0", "--emf", "file:"+os.DevNull, "--webhook-url", "https://127.0.0.1:1/", "--webhook-secret-file", secret, "--otlp-endpoint", "http://127.0.0.1:1")...)
		if _, err := check(p.client(), "t", "-", "-"); err != nil {
			t.Fatal(err)
		}
		maps.Copy(served, types(kinds, p.get("/metrics")))
	}
	maps.Copy(served, types(kinds, meshMetrics(t)))
	site := newSite(t)
	site.push(tableLimits(t, ""), "ann")
	plane, found := launch(t, site.command("controlplane", "--table", "limits", "--topic", site.topic, "--leases", "leases", "--cells", "cells", "--admin", "127.0.0.1:0"), serving)
	plane.admin = found[1]
	maps.Copy(served, types(kinds, plane.get("/metrics")))
	maps.Copy(served, types(kinds, site.serveCell("a").get("/metrics")))
	maps.Copy(served, types(kinds, serveUsers(t, []string{"user a off"}, "--jwt-jwks", "https://127.0.0.1:1/", "--jwt-issuer", "i", "--jwt-audience", "a", "--bypass-jwks", "https://127.0.0.1:1/").get("/metrics")))
	encrypted := certify(t, redistest.NewAuthority(t), "")
	encrypted.web = insecureWeb(t)
	maps.Copy(served, types(kinds, encrypted.get("/metrics")))
	path := writeLimits(t, limitOf("1/h"))
	tries := serve(t, path, "--limits-canary", "5%")
	replace(t, path, limitOf("2/h"))
	eventually(t, "a trial", func() bool {
		kinds := types(kinds, tries.get("/metrics"))
		maps.Copy(served, kinds)
		return kinds["limitgate_trial_denied"] != ""
	})
	if len(served) < 10 || !maps.Equal(page, served) {
		t.Errorf("docs/metrics.md has\n%v\nand proxies have\n%v", page, served)
	}
}

// meshMetrics returns the metrics of a proxy that Envoy has asked.
func meshMetrics(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "mesh.yaml"), []byte(meshRules), 0o600); err != nil {
		t.Fatal(err)
	}
	p := serve(t, "", append(exact, "--rls", "127.0.0.1:0", "--rls-config", folder)...)
	if got, err := asksMesh(t.Context(), p.rateLimitClient(t), "tight=x"); err != nil || got != "OK 2" {
		t.Errorf("Envoy is answered %s, %v", got, err)
	}
	return p.get("/metrics")
}
