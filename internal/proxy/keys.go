package proxy

import (
	"context"
	"log/slog"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/jwks"
	"github.com/limitgate/limitgate/internal/run"
)

// tokenKeys are the keys of tokens, and what reads them again.
type tokenKeys struct {
	*jwks.Keys
	parts []run.Part
}

// openKeys reads the keys of a file, which is watched, or of a URL.
func openKeys(ctx context.Context, name string, log *slog.Logger) (*tokenKeys, error) {
	keys, err := jwks.Open(ctx, jwks.Options{JWKS: name, ReadFile: config.ReadFile, Log: log})
	if err != nil {
		return nil, err
	}
	k := &tokenKeys{keys, []run.Part{keys.Run}}
	if !jwks.IsURL(name) {
		k.parts = append(k.parts, config.NewWatcher(name, keys.Trigger).Run)
	}
	return k, nil
}
