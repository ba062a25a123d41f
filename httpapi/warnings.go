package httpapi

import (
	"log/slog"
	"sync"
)

// warnings logs mistakes of a gateway's configuration once each: the requests show them.
type warnings struct {
	log              *slog.Logger
	onAuto, onNoPath sync.Once
}

// auto warns that a client may be able to choose its op.
func (w *warnings) auto() {
	w.onAuto.Do(func() {
		w.log.Warn("clients of a gateway can choose their op by a header that it passes on: name the gateway by --http-gateway")
	})
}

// noPath warns that limits by op have no effect.
func (w *warnings) noPath(g Gateway) {
	w.onNoPath.Do(func() {
		_, uris := g.headers()
		w.log.Warn("a request at /check has no op, because the gateway sends no path", "gateway", g.String(), "headers", uris)
	})
}
