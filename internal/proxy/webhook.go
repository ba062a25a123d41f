package proxy

import (
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/nearlimit"
	"github.com/limitgate/limitgate/internal/webhook"
	"github.com/limitgate/limitgate/metrics"
)

// openWebhook returns the sender of events of the settings, or nil.
func (p *Proxy) openWebhook() (*webhook.Sender, error) {
	if p.settings.WebhookURL == "" {
		return nil, nil
	}
	w, err := webhook.New(webhook.Options{
		URL: p.settings.WebhookURL, SecretFile: p.settings.WebhookSecretFile, ReadFile: config.ReadWebhookSecrets,
		Version: p.version, Log: p.log,
	})
	if err != nil {
		return nil, err
	}
	metrics.LabelledCounter(p.metrics, "limitgate_webhook_events_total", "Events for the webhook, by what became of them.", "outcome", map[string]func() int64{
		"sent":    func() int64 { return w.Counts().Sent },
		"failed":  func() int64 { return w.Counts().Failed },
		"dropped": func() int64 { return w.Counts().Dropped },
	})
	metrics.Gauge(p.metrics, "limitgate_webhook_queued", "Events that wait for the webhook.", func() float64 { return float64(w.Counts().Queued) })
	return w, nil
}

// nearLimitType is the type of the events about buckets that are nearly used up.
const nearLimitType = "bucket.near_limit"

// sendNearLimit passes an event on to the webhook. It returns false for one that finds no room.
func (p *Proxy) sendNearLimit(e nearlimit.Event) (taken bool) {
	return p.webhook.Send(webhook.Event{ID: e.ID, Type: nearLimitType, At: e.At, Data: e})
}
