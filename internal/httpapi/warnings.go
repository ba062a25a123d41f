package httpapi

import (
	"log/slog"
	"sync"
)

// warnings logs mistakes of a gateway's configuration once each: the requests show them. No message
// has anything that a client sent.
type warnings struct {
	log                                                             *slog.Logger
	onAuto, onNoPath, onRefused, onCost, onUntrusted, onMisdirected sync.Once
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
		w.log.Warn("a request at /check has no op, because the gateway sends no path", "gateway", g.String(), "headers", uris, "advice", "a check with a JSON body goes to /v1/check")
	})
}

// misdirected warns that a check in JSON is taken for the request of a gateway's client.
func (w *warnings) misdirected() {
	w.onMisdirected.Do(func() {
		w.log.Warn("a request below /check has no tenant, and a check in JSON as its body", "advice", "a check in JSON goes to /v1/check, and a gateway says by ?tenant= or a user what the tenant is")
	})
}

// refused warns that a gateway gets errors for decisions.
func (w *warnings) refused(reason string) {
	w.onRefused.Do(func() { w.log.Warn("a request at /check is refused", "reason", reason) })
}

// cost warns that a cost counts as 1.
func (w *warnings) cost() {
	w.onCost.Do(func() { w.log.Warn("a cost at /check is no whole number above zero, and counts as 1") })
}

// untrusted warns that addresses of clients are not read.
func (w *warnings) untrusted() {
	w.onUntrusted.Do(func() {
		w.log.Warn("the gateway is in none of --http-trusted-cidrs, so its header with addresses of clients is not read")
	})
}
