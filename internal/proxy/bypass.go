package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/bypass"
	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/metrics"
)

// bypassTokens are the tokens that let requests pass the limits, and their files.
type bypassTokens struct {
	settings *config.Settings
	log      *slog.Logger
	keys     *tokenKeys
	tokens   *bypass.Tokens
	watcher  *config.Watcher // of the list of revoked ones; nil without it
	stale    atomic.Bool     // the present list is not in use
}

// openBypass reads the files of bypass tokens. It returns nil if the settings have no keys.
func openBypass(ctx context.Context, s *config.Settings, instances func() int, log *slog.Logger) (*bypassTokens, error) {
	if s.BypassKeys == "" {
		return nil, nil
	}
	keys, err := openKeys(ctx, s.BypassKeys, log)
	if err != nil {
		return nil, err
	}
	b := &bypassTokens{settings: s, log: log, keys: keys, tokens: bypass.New(keys.Keys, bypass.Options{Instances: instances, Log: log})}
	if s.BypassRevoked == "" {
		return b, nil
	}
	b.watcher = config.NewWatcher(s.BypassRevoked, b.reload)
	return b, b.load()
}

// load reads the list of revoked tokens. After an error the earlier one stays in force.
func (b *bypassTokens) load() error {
	content, err := config.ReadFile(b.settings.BypassRevoked, bypass.MaxRevokedBytes)
	if err != nil {
		return fmt.Errorf("read revoked bypass tokens: %w", err)
	}
	ids, err := bypass.ParseRevoked(content)
	if err != nil {
		return fmt.Errorf("read revoked bypass tokens of %s: %w", b.settings.BypassRevoked, err)
	}
	b.tokens.SetRevoked(ids)
	b.log.Info("revoked bypass tokens loaded", "tokens", len(ids))
	return nil
}

// reload reads a list that has changed.
func (b *bypassTokens) reload() {
	err := b.load()
	b.stale.Store(err != nil)
	if err != nil {
		b.log.Error("failed to read the revoked bypass tokens, using the earlier list", "error", err)
	}
}

// parts returns what runs beside the server.
func (b *bypassTokens) parts() []run.Part {
	all := b.keys.parts
	if b.watcher != nil {
		all = append(all, b.watcher.Run)
	}
	return all
}

// trigger makes the files be read again.
func (b *bypassTokens) trigger() {
	b.keys.Trigger()
	if b.watcher != nil {
		b.watcher.Trigger()
	}
}

// registerMetrics registers the metrics of bypass tokens, which are read at each scrape.
func (b *bypassTokens) registerMetrics(r *prometheus.Registry) {
	results := map[string]func() int64{}
	for _, o := range bypass.Outcomes() {
		results[o.String()] = func() int64 { return b.tokens.Count(o) }
	}
	metrics.LabelledCounter(r, "limitgate_bypass_total", "Requests with a bypass token, by the result; after all but used the limits decide.", "result", results)
	metrics.Gauge(r, "limitgate_bypass_keys", "Keys of bypass tokens in force.", func() float64 { return float64(b.keys.Len()) })
	metrics.Counter(r, "limitgate_bypass_keys_failures_total", "Times the keys of bypass tokens could not be read.", b.keys.Failures)
	metrics.Gauge(r, "limitgate_bypass_revoked_stale", "1 while a newer list of revoked bypass tokens could not be loaded.", func() float64 {
		if b.stale.Load() {
			return 1
		}
		return 0
	})
}
