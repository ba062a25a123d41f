package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestDimensionOfCredentials: the secret of a header is in no name of a bucket, and one with another form of the
// same scheme has the same bucket.
func TestDimensionOfCredentials(t *testing.T) {
	file := writeLimits(t, "{version: 1, default_plan: p, plans: {p: [{id: key, by: [tenant, key], rate: 2/h}]}}")
	p, web := serveHTTP(t, file, "--http-gateway", "nginx", "--http-dim-headers", "key=Authorization")
	for i, row := range []struct {
		secret string
		code   int
	}{{"Bearer sk_live_51", 200}, {"bearer  sk_live_51", 200}, {"Bearer sk_live_51", 429}, {"Bearer sk_live_52", 200}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+web+"/check", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", row.secret)
		a, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
		if a.StatusCode != row.code {
			t.Errorf("request %d: %s, want %d", i, a.Status, row.code)
		}
	}
	if top := fmt.Sprint(p.client().Do(t.Context(), "RL.TOP").Val()); strings.Contains(top, "sk_live") || strings.Count(top, "key=key-") < 2 {
		t.Errorf("the buckets are %s", top)
	}
}
