package integration

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestHashedDimension: a secret has one bucket, by RESP and by HTTP alike, and is in no key and no reply. Conditions are on
// its value.
func TestHashedDimension(t *testing.T) {
	node := redistest.Start(t)
	file := writeLimits(t, `{version: 1, default_plan: p, dimensions: {key: {hash: true}}, plans: {p: [
		{id: key, by: [tenant, key], rate: 4/h}, {id: test, by: [tenant, key], when: {key: "sk_test_*"}, rate: 1/h, replaces: [key]}]}}`)
	p, web := serveHTTP(t, file, "--redis", node.Addr, "--http-gateway", "nginx", "--http-dim-headers", "key=X-Api-Key")
	c := p.client()
	byHeader := func(key string) string { return gatewayCode(t, "http://"+web+"/check?tenant=acme", key) }
	byURL := func(key string) string {
		return gatewayCode(t, "http://"+web+"/check?tenant=acme&dim.key="+url.QueryEscape(key), "")
	}
	byRESP := func(key string) string {
		d, err := check(c, "acme", "-", "-", "1", "DIM", "key", key)
		if err != nil {
			t.Fatal(err)
		}
		return map[bool]string{true: "200", false: "429"}[d.allowed]
	}
	for i, step := range []struct {
		by        func(string) string
		key, want string
	}{
		{byHeader, "sk_live_51", "200"},
		{byURL, "sk_live_51", "200"},
		{byRESP, "sk_live_51", "200"},
		{byRESP, "sk_live_51", "200"},
		{byHeader, "sk_live_51", "429"},
		{byURL, "sk_live_51", "429"},
		{byRESP, "sk_live_51", "429"},
		{byRESP, "sk_live_52", "200"},
		{byURL, "sk_test_1", "200"},
		{byHeader, "sk_test_1", "429"},
		{byHeader, strings.Repeat("j", 300), "200"},
		{byURL, strings.Repeat("j", 300), "200"},
		{byHeader, strings.Repeat("j", 300), "200"},
		{byHeader, strings.Repeat("j", 300), "200"},
		{byHeader, strings.Repeat("j", 300), "429"},
		{byHeader, strings.Repeat("j", 301), "200"},
	} {
		if got := step.by(step.key); got != step.want {
			t.Errorf("step %d, of %s: %s, want %s", i, step.key, got, step.want)
		}
	}
	keys, err := node.Client().Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	top := fmt.Sprint(c.Do(t.Context(), "RL.TOP").Val(), c.Do(t.Context(), "RL.DENIED").Val(), keys)
	if strings.Contains(top, "sk_") || strings.Count(top, ";key=") < 3 {
		t.Errorf("the keys and replies have %s", top)
	}
}

// gatewayCode asks for a decision as a gateway does, and returns the status code.
func gatewayCode(t *testing.T, address, key string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	a, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Body.Close()
	return fmt.Sprint(a.StatusCode)
}
