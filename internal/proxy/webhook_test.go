package proxy

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/webhook"
)

// TestWebhook checks that a proxy delivers events while it runs, and those that wait at its end, with its
// version, and exports the counts.
func TestWebhook(t *testing.T) {
	received := make(chan http.Header, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received <- r.Header }))
	defer server.Close()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("whsec_"+strings.Repeat("A", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, _, _, err := config.Load([]string{"--listen=127.0.0.1:0", "--admin=", "--webhook-url", server.URL, "--webhook-secret-file", secret}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(t.Context(), Options{Settings: settings, Version: "1.2.3", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	event := func(id string) {
		if !p.webhook.Send(webhook.Event{ID: id, Type: "test", At: time.Now()}) {
			t.Errorf("%s is not queued", id)
		}
	}
	event("first")
	if h := <-received; h.Get("webhook-id") != "first" || h.Get("User-Agent") != "limitgate/1.2.3" || !strings.HasPrefix(h.Get("webhook-signature"), "v1,") {
		t.Errorf("received %v", h)
	}
	event("second")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if h := <-received; h.Get("webhook-id") != "second" {
		t.Errorf("received %v", h)
	}
	got := map[string]float64{}
	families, err := p.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == "limitgate_webhook_events_total" {
					got[l.GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
	}
	if len(got) != 3 || got["sent"] != 2 || got["failed"]+got["dropped"] != 0 {
		t.Errorf("the counts are %v", got)
	}
}
