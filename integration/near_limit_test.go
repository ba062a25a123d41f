package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestNearLimit: a bucket that is nearly used up is one signed event of two proxies that share it, with
// one id, and each such request counts.
func TestNearLimit(t *testing.T) {
	const secret = "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cywgMzIgYnl0ZXMh"
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	type event struct {
		id   string
		Type string
		Data struct {
			Limit, Tenant, Bucket string
			Remaining             int64
		}
	}
	events := make(chan event, 10)
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e := event{id: r.Header.Get("webhook-id")}
		if err := hook.Verify(body, r.Header); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if err := json.Unmarshal(body, &e); err != nil {
			t.Error(err)
		}
		events <- e
	}))
	defer endpoint.Close()
	limits := writeLimits(t, limitOf("10/366d, algorithm: fixed_window, warn: 80%"))
	flags := append(exact, "--redis", redistest.Start(t).Addr, "--webhook-url", endpoint.URL, "--webhook-secret-file", file)
	ids := map[string]bool{}
	for i, p := range []*proxy{serve(t, limits, flags...), serve(t, limits, flags...)} {
		if metrics := p.get("/metrics"); !strings.Contains(metrics, `limitgate_near_limit_total{limit="a",mode="enforce"} 0`) {
			t.Error("before the first request there is no counter")
		}
		c := p.client()
		for n := 8 - 7*i; n > 0; { // the second proxy sends one check, of a bucket of which 80 % are used
			v, err := check(c, "acme", "-", "203.0.113.7")
			if err != nil || !v.allowed {
				t.Fatalf("%+v, %v", v, err)
			}
			if v.source == "store" { // a slow machine may begin without it
				n--
			}
		}
		select {
		case e := <-events:
			if ids[e.id] = true; e.Type != "bucket.near_limit" || e.Data.Tenant != "acme" || e.Data.Limit != "a" || e.Data.Remaining != int64(2-i) || !strings.HasPrefix(e.Data.Bucket, "lg:t:{acme}:a") {
				t.Errorf("event %+v", e)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no event\n%s", p.output())
		}
		if metrics := p.get("/metrics"); !strings.Contains(metrics, `limitgate_near_limit_total{limit="a",mode="enforce"} 1`) {
			t.Error("the request is not counted")
		}
		if !strings.Contains(p.output(), `msg="bucket nearly used up" limit=a`) {
			t.Errorf("log\n%s", p.output())
		}
	}
	if len(ids) != 1 {
		t.Errorf("ids %v", ids)
	}
}

// TestNearLimitInMemory: a proxy without a Redis counts them too, although its checks take the fast path
// otherwise.
func TestNearLimitInMemory(t *testing.T) {
	p := serve(t, writeLimits(t, limitOf("10/h, warn: 80%")))
	c := p.client()
	for range 9 {
		if v, err := check(c, "acme", "-", "-"); err != nil || !v.allowed {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	if metrics := p.get("/metrics"); !strings.Contains(metrics, `limitgate_near_limit_total{limit="a",mode="enforce"} 2`) {
		t.Error("the requests are not counted")
	}
}
